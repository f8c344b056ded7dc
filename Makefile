# Every command sets up a fresh machine first; these three are the ones to begin with:
#   make first         the environment, and the first notebook as a page to look at
#   make reproduce     the environment, every notebook on the demo corpus, a report to look at
#   make test          the same environment, every test, the notebooks themselves under nbval
# make PYTHON=python3.12 ... uses another Python; RUN=open reproduces another run of params/.
.DEFAULT_GOAL := help
.PHONY: help setup first lab book reproduce train test torture publish clean mine
SHELL := /bin/bash
PYTHON ?= python3
RUN ?= demo
# notebooks that run at once: one where they share a GPU
JOBS ?= 2
# the training that several processes share: 03_train of RUN or a variant of it, also one for a GPU, such as 03_train.gpu
MODEL ?= 03_train
PROCESSES ?= 2
# What a user gives is text: make expands nothing in it, and the shell reads it from the environment, where a quote, a
# backtick or a dollar sign is a letter like any other. So no recipe says $(POSTS); each says "$$POSTS".
RUN_ORIGIN := $(origin RUN)
GIVEN := JOBS MODEL PORT POSTS PROCESSES PYTHON RUN
$(foreach name,$(GIVEN),$(if $(value $(name)),$(eval override $(name) := $$(value $(name)))$(eval export $(name))))
CHECK_RUN = if ! [[ "$$RUN" =~ ^[A-Za-z0-9][A-Za-z0-9_.-]*$$ ]]; then \
    echo "RUN is the name of a run: letters, digits, '.', '_' and '-'"; exit 1; fi
BIN := .venv/bin
# Four groups of notebooks under nbval. FIRST makes the input of all others but of BESIDE, which run at the same time. The
# notebooks of THEN are independent of each other. LAST looks at the models of both. The longest notebook comes first; 06
# trains the models that 07 and 08 use.
FIRST := $(wildcard notebooks/01*.ipynb notebooks/02*.ipynb)
BESIDE := $(wildcard notebooks/00*.ipynb notebooks/13*.ipynb)
LAST := $(foreach number,06 12 11 07 08,$(wildcard notebooks/$(number)*.ipynb))
LONG := $(foreach number,16 15 17 10 09 04,$(wildcard notebooks/$(number)*.ipynb))
THEN := $(LONG) $(filter-out $(FIRST) $(BESIDE) $(LONG) $(LAST),$(sort $(wildcard notebooks/[0-9]*.ipynb)))
NBVAL = $(BIN)/python -m pytest -p tests.kernels -p no:python --nbval-lax --nbval-current-env --nbval-sanitize-with tests/nbval.cfg \
    --nbval-cell-timeout 900 --tb short -x
# keep this order: by default xdist begins with the notebook that has the most cells
SHARED = -n 2 --dist loadfile --no-loadscope-reorder

# uv does not read pip's setting find-links, so it is passed on
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
export UV_PYTHON_DOWNLOADS = never
# idle threads that spin slow other processes down; tokenizers warn when a kernel forks
export OMP_WAIT_POLICY ?= passive
export TOKENIZERS_PARALLELISM ?= false

help:
	@echo "make setup                 the environment, in .venv"
	@echo "make first                 the first notebook as a page to open in a browser: seconds, once everything is installed"
	@echo "make lab [PORT=]           JupyterLab on working copies of the notebooks, in outputs/lab"
	@echo "make book                  the committed notebooks as one page to read, in outputs/book"
	@echo "make reproduce [RUN=demo]  run every notebook of a run (params/RUN/) and make a report; continue where it stopped"
	@echo "make train [MODEL=03_train.T PROCESSES=2]  one training of RUN in several processes, on GPUs where there are any"
	@echo "make test                  architecture tests (who imports whom), ruff, unit tests, then every notebook under nbval"
	@echo "make torture               kills, full disks, damaged files, hostile input: more of each than make test"
	@echo "make publish               execute the committed notebooks in place (needs Chrome or Chromium)"
	@echo "make clean RUN=name        delete outputs/name, and the names of people that this run remembers"

setup: .venv/.ok

# From PyTorch's own index comes torch's build for this machine's GPU, or, where there is none, the build for CPUs, which is
# gigabytes smaller. Where find-links name wheels, or nobody answers there, torch comes from where all else comes from.
UV_INSTALL = $(BIN)/uv pip install -q --compile-bytecode --python $(BIN)/python -c constraints.txt -e ".[dev]"

# constraints.txt pins every package; uv installs in seconds, plain pip does the same in a minute or two
.venv/.ok: pyproject.toml constraints.txt
	@"$$PYTHON" -c 'import sys; v = sys.version_info[:3]; sys.exit(None if (3, 11, 5) <= v < (3, 14) else \
	    "authorbook needs Python 3.11.5 to 3.13, this is %d.%d.%d: make PYTHON=python3.11 ..." % v)'
	"$$PYTHON" -m venv .venv
	@if $(BIN)/python -m pip install -q "uv==0.13.8" 2> /dev/null; then \
	    echo "installing with uv"; \
	    if [ -n "$$UV_FIND_LINKS" ] || ! $(UV_INSTALL) --torch-backend "$${UV_TORCH_BACKEND:-auto}" 2> /dev/null; then \
	        $(UV_INSTALL); fi; \
	else \
	    echo "installing with pip"; \
	    $(BIN)/python -m pip install -q -c constraints.txt -e ".[dev]"; \
	fi
	@rm -f $(BIN)/authorbook  # the program of the wheel: in this folder it is python -m helpers
	@$(BIN)/python -W ignore -c "import umap"  # numba compiles it once, which takes half a minute
	@touch $@

# Notebook 00 explains author embeddings; it needs no data and no earlier run.
first: export TQDM_DISABLE := 1
first: setup
	@$(BIN)/python docs/book.py first

reproduce: setup
	$(BIN)/python -m helpers.runs --jobs "$$JOBS" -- "$$RUN"

# The outputs folder is fresh, so that no older output can hide a failure.
test: export AUTHORBOOK_OUTPUTS := $(CURDIR)/outputs/test
test: export TQDM_DISABLE := 1
# two processes at once, one thread each
test: export OMP_NUM_THREADS := 1
test: setup
	rm -rf outputs/test
	$(BIN)/lint-imports --no-cache
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/python -m pytest tests -n 2 --dist worksteal
	$(NBVAL) $(BESIDE) & beside=$$!; $(NBVAL) $(FIRST); first=$$?; wait $$beside && exit $$first
	$(NBVAL) $(SHARED) $(THEN)
	$(NBVAL) $(SHARED) $(LAST)

# What make test leaves out.
torture: export OMP_NUM_THREADS := 1
torture: export TQDM_DISABLE := 1
torture: setup
	$(BIN)/python -m pytest tests/faults --torture -n 2 --dist worksteal
	$(BIN)/python -m pytest tests --ignore tests/faults -m torture --torture -n 2

# Notebook 03 as a script that every process runs; `make reproduce` then finds the trained model and reuses it.
train: export PLOTLY_RENDERER := json
train: export PYTHONWARNINGS := ignore::FutureWarning
train: setup
	@$(CHECK_RUN); [[ "$$MODEL" =~ ^03_train[A-Za-z0-9_.-]*$$ && "$$PROCESSES" =~ ^[1-9][0-9]*$$ ]] || \
	    { echo "MODEL is 03_train or a variant of it, such as 03_train.T; PROCESSES is a number"; exit 1; }
	umask 077; set -e; folder="$${AUTHORBOOK_OUTPUTS:-outputs}/$$RUN/train"; mkdir -p "$$folder"; \
	files=(-f "params/$$RUN/03_train.yaml"); \
	if [ "$$MODEL" != 03_train ]; then files+=(-f "params/$$RUN/$$MODEL.yaml"); fi; \
	$(BIN)/papermill --prepare-only --log-level ERROR notebooks/03_train.ipynb "$$folder/$$MODEL.ipynb" -p run "$$RUN" \
	    "$${files[@]}"; \
	$(BIN)/jupyter nbconvert --log-level ERROR --to python "$$folder/$$MODEL.ipynb"; \
	echo "the log of every process is in $$folder/log"; \
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-$$(( ($$(getconf _NPROCESSORS_ONLN) + PROCESSES - 1) / PROCESSES ))} \
	    $(BIN)/torchrun --standalone --nproc-per-node "$$PROCESSES" --redirects 1 --log-dir "$$folder/log" "$$folder/$$MODEL.py"

# The other commands about a file of posts, and their options: .venv/bin/python -m helpers --help
mine: setup
	@if [ -z "$$POSTS" ]; then echo "name your file: make mine POSTS=posts.csv"; exit 1; fi
	$(BIN)/python -m helpers mine -- "$$POSTS"

# Copies, so that running a notebook never rewrites the committed one. A copy that you changed is kept.
lab: setup
	@umask 077; lab="$${AUTHORBOOK_OUTPUTS:-outputs}/lab"; mkdir -p "$$lab/.committed"; \
	for book in notebooks/*.ipynb; do \
	    name=$${book##*/}; copy="$$lab/$$name"; before="$$lab/.committed/$$name"; \
	    if [ ! -e "$$copy" ] || cmp -s "$$copy" "$$before"; then cp "$$book" "$$copy" && cp "$$book" "$$before"; \
	    elif cmp -s "$$book" "$$before"; then echo "$$copy has your changes and is kept"; \
	    else echo "$$copy has your changes and is kept; $$book is newer: delete your copy to get it"; fi; done; \
	$(BIN)/jupyter lab $${PORT:+--port "$$PORT"} $(if $(filter 0,$(shell id -u)),--allow-root) "$$lab"

book: setup
	$(BIN)/python docs/book.py

# one thread, as in make test: training gives other numbers with two
publish: export OMP_NUM_THREADS := 1
publish: setup
	$(BIN)/python docs/publish.py

clean:
	@if [ "$(RUN_ORIGIN)" != "command line" ]; then echo "name the run: make clean RUN=demo"; exit 1; fi; $(CHECK_RUN)
	rm -rf "outputs/$$RUN" "outputs/.names/$$RUN"
