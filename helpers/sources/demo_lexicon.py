"""Words, sentence patterns and distributions of habits of the demo corpus.

A pattern is a row of tokens. A token in capitals is a slot: N, V, VD, AJ are a noun, a verb, its past tense and an
adjective of the post's topic; the other slots are either general words (GENERAL) or something the author has a habit
for (see ``demo.py``). Every other token stands for itself.
"""

from itertools import count

import numpy as np

# topic: nouns | verbs (transitive, regular) | adjectives
_TOPICS = {
    "cooking": """onion garlic skillet recipe broth pastry oven whisk ladle marinade dough risotto stew casserole
        pepper saucepan cutlet lentil omelette vinegar butter crust gravy spatula pancake dumpling curry noodle
        shallot thyme basil pantry freezer stove apron chutney
        | chop simmer roast season knead marinate grill blend braise garnish whisk steam toast reheat
        | crispy salty tender buttery spicy zesty burnt creamy undercooked smoky tangy bland""",
    "chess": """bishop knight rook pawn queen opening endgame gambit checkmate castle tempo fianchetto file diagonal
        blunder tournament clock opponent sacrifice pin fork skewer stalemate middlegame defender rating variation
        square exchange zugzwang promotion tactic puzzle simul arbiter scoresheet
        | capture promote develop sacrifice trade attack defend blockade calculate resign exploit double block review
        | positional tactical cramped passed hanging drawish forcing solid doubled isolated prophylactic winning""",
    "cycling": """derailleur saddle crank pedal spoke wheel handlebar chain cassette frame helmet peloton climb descent
        gravel commute puncture pump hub bracket brake jersey cadence sprint velodrome fork rim sidewall pannier
        mudguard bidon tailwind chainring stem rotor rack
        | steer shift inflate grease tighten overtake draft patch adjust climb align index scrape replace
        | aerodynamic tubeless carbon rigid geared steep windy wobbly rusty paved lightweight fixed""",
    "gardening": """compost seedling trellis mulch shovel tomato rose hedge greenhouse aphid lawn perennial bulb
        raised-bed wheelbarrow trowel soil fertilizer orchard weed cucumber petal root slug rake hose lavender
        hydrangea vine cutting pot zucchini squash pollinator shrub nursery
        | prune plant water transplant weed mulch harvest feed dig-up uproot graft propagate trim repot
        | leafy shady blooming thorny overgrown fertile drought-hardy wilted evergreen sandy rooted mossy""",
    "astronomy": """telescope nebula galaxy eyepiece comet eclipse orbit planet crater supernova tripod asteroid
        meteor constellation spectrum aperture mount pulsar quasar dobsonian refractor parallax moon redshift
        corona satellite observatory exposure cluster sunspot equinox zenith filter finder lens dwarf
        | observe track photograph resolve magnify detect collimate spot stack chart eclipse point calibrate orbit
        | faint stellar lunar distant bright infrared celestial elliptical hazy massive dim spiral""",
    "photography": """shutter aperture lens tripod portrait flash sensor exposure histogram bokeh negative darkroom
        filter viewfinder raw-file landscape shadow highlight strobe softbox rangefinder print composition zoom
        backdrop album contrast focus frame lightbox mirrorless autofocus snapshot enlarger gimbal reflector
        | crop expose retouch develop frame focus edit print compose scan underexpose meter bracket sharpen
        | blurry sharp overexposed grainy candid backlit monochrome wide vivid muted cinematic moody""",
    "programming": """compiler function variable loop pointer module thread debugger refactor library parser branch
        commit stack closure array regex interface bug deadlock script terminal patch cache exception repository
        linker macro type iterator unit-test buffer dependency scheduler runtime snippet
        | compile refactor debug merge deploy parse import patch allocate cache override rename log mock
        | recursive asynchronous deprecated immutable verbose generic nested typed idempotent brittle legacy lazy""",
    "cinema": """director screenplay trailer sequel actor scene cinematographer soundtrack plot villain premiere
        montage audition cameo remake script studio thriller projector subtitle costume ending credit close-up
        documentary twist matinee stunt reel cast protagonist flashback prequel screening western noir
        | direct film watch cast rewatch review portray narrate stream remake screen reshoot dub edit
        | gripping slow-burning predictable scripted animated dramatic suspenseful campy bleak iconic silent tense""",
    "football": """striker goalkeeper midfielder penalty referee corner defender league derby transfer manager
        winger offside kickoff tackle header pitch stadium relegation squad fixture captain formation substitute
        linesman crossbar scarf dugout freekick touchline fullback playoff equalizer jersey fan hat-trick
        | score tackle dribble mark pass head volley sign loan bench substitute concede press intercept
        | offside injured clinical defensive relegated prolific one-sided unbeaten pacy sloppy scrappy attacking""",
    "woodworking": """chisel lathe plank dovetail mortise tenon sander clamp workbench plywood varnish veneer router
        bandsaw mallet joint oak walnut maple grain dowel glue jig bevel drawer cabinet sawdust shavings plane
        vise hinge shelf tabletop spindle burr rasp
        | sand saw whittle clamp varnish carve glue plane drill stain rout laminate assemble polish
        | warped splintered knotty smooth hardwood flush mitered unfinished squared sturdy rough seasoned""",
    "music": """guitar chord melody bassline drummer chorus riff amplifier album vinyl encore concert tempo-change
        synthesizer violin harmony setlist pedalboard cymbal verse bridge fret lyric mixdown microphone rehearsal
        piano scale saxophone busker playlist remix metronome duet headphone ballad
        | strum record tune rehearse compose sing-along mix hum sample play transpose arrange perform loop
        | melodic acoustic distorted catchy off-key syncopated mellow upbeat minor loud reverberant atonal""",
    "travel": """suitcase passport hostel itinerary flight layover visa museum ferry luggage backpack guidebook
        souvenir border train-pass embassy terminal customs hotel beach village rental cathedral tram marina
        excursion jetlag postcard island checkout aisle boarding-pass tour market scooter bazaar
        | visit explore book tour pack cross board reserve wander photograph miss reschedule recommend stroll
        | touristy remote scenic overbooked tropical budget cobbled delayed crowded picturesque overnight coastal""",
    "baking": """sourdough baguette muffin starter yeast frosting cupcake brownie proofing-basket sponge meringue
        tart croissant flour ganache crumb scone pie-crust biscuit cookie tray parchment mixer cinnamon caramel
        doughnut loaf glaze batter icing macaron focaccia rye pudding cheesecake custard
        | bake proof knead glaze fold ice frost sift cream dust layer pipe chill ferment
        | flaky gooey sourdough-based dense airy golden chewy soggy crumbly sweet moist stale""",
    "hiking": """trail summit ridge boot campsite switchback cairn map-sheet canyon waterfall ranger lodge peak
        compass valley bear crampon poncho footbridge shelter scree pass meadow trekking-pole sock blister gaiter
        glacier stream overlook stile moor thermos rucksack hut boulder
        | climb hike cross follow explore scramble-up ascend traverse camp-near spot trek reach approach pass
        | muddy steep rocky alpine exposed well-marked foggy scenic icy strenuous windswept overcast""",
    "boardgames": """dice token meeple board expansion rulebook card deck playtest scoring-track player turn hex tile
        campaign miniature dungeon auction worker-placement resource tableau draft sleeve box insert faction cube
        trick bluff variant turn-order cooperative prototype kickstarter legacy-box designer
        | draft roll shuffle deal trade discard score draw-from explore upgrade play punch sort auction
        | asymmetric replayable thematic fiddly cooperative abstract luck-driven crunchy swingy heavy tight random""",
    "fitness": """squat deadlift barbell treadmill dumbbell plank-hold kettlebell stretch repetition protein bench
        workout warmup cardio rower trainer hamstring quad calf deload pullup lunge core gym-bag belt plateau
        sprint-set recovery posture shoulder glute biceps burpee jog marathon stopwatch
        | lift stretch press train squat row bulk curl jump warm-up rest deadlift isolate bench
        | sore heavy weighted explosive lean aerobic stiff supine progressive tired strained muscular""",
    "history": """empire treaty monarch siege archive dynasty revolution battlefield parliament manuscript fortress
        chronicle colony republic peasant cavalry artifact emperor rebellion excavation archaeologist ruin
        merchant-guild crusade armistice census historian scribe coinage tapestry legion charter papyrus feudalism
        aqueduct tribune
        | conquer chronicle besiege excavate abolish invade plunder overthrow document crown annex exile date ratify
        | medieval ancient imperial feudal colonial bronze-age dynastic revolutionary wartime royal disputed noble""",
    "finance": """portfolio dividend mortgage index-fund broker pension interest loan inflation budget savings bond
        credit audit invoice equity recession hedge-fund stock market-order deposit refund tax deduction ledger
        payroll asset liability annuity escrow yield ticker premium insurance overdraft spreadsheet
        | invest refinance deposit withdraw-from audit hedge budget insure borrow-against diversify liquidate rebalance
        transfer allocate
        | volatile taxable overdue liquid bearish bullish fixed-rate leveraged frugal insolvent undervalued compound""",
    "cats": """kitten litterbox whisker paw collar tabby scratching-post vet treat-jar catnip hairball purr tail
        windowsill cat-flap sofa-arm kibble feather-toy carrier claw siamese rescue fur bowl nap cat-tree mouse
        meow vaccine flea belly microchip laser blanket stray shelter-worker
        | adopt groom pet feed scratch chase neuter cuddle brush stalk vaccinate pounce-on pamper ignore
        | fluffy sleepy playful grumpy feral clingy purring nocturnal shy spoiled striped curious""",
    "electronics": """resistor capacitor solder breadboard transistor diode multimeter oscilloscope circuit voltage
        microcontroller battery inductor relay sensor-board heatsink connector motor ground-plane footprint header
        fuse potentiometer trace amplifier-stage regulator crystal jumper firmware schematic enclosure switch
        charger led thermistor wiring
        | solder wire measure probe rectify ground fuse desolder bias amplify etch insulate short route
        | shorted analog digital overheated inductive noisy grounded fried low-power surface-mount tinned rated""",
    "books": """novel chapter author-note protagonist paperback library-card narrator publisher trilogy memoir
        bookshop plot-hole prologue sonnet anthology bookmark hardcover audiobook translation essay epilogue poem
        paragraph fable blurb manuscript-draft critic metaphor shelf-mark genre fantasy mystery biography
        footnote reprint novella
        | read-through reread annotate publish translate borrow review skim finish narrate recommend abandon
        shelve quote
        | poetic dystopian unreliable gothic literary witty well-plotted dense gripping allegorical tedious lyrical""",
    "parenting": """toddler stroller bedtime daycare diaper tantrum teacher playground homework sibling nap-time
        bottle crib lunchbox pediatrician chore babysitter grandparent birthday classroom sticker curfew teenager
        schoolbag playdate potty bath lullaby pacifier puzzle-mat newborn recital nursery-rhyme screen-time
        highchair allowance
        | soothe comfort bathe praise feed discipline carry tuck-in teach-about schedule dress entertain raise wean
        | fussy teething stubborn cranky well-behaved overtired picky giggly rowdy gentle school-age tired""",
    "linux": """kernel distro package shell daemon partition bootloader driver desktop init-script filesystem root
        terminal-emulator mount-point laptop installer repository-key compositor permission symlink log-file swap
        server config firewall container cron-job backup systemd-unit mirror snapshot live-usb touchpad user-group
        dotfile sandbox
        | install mount boot upgrade patch reboot configure partition encrypt purge chroot-into format restore pin
        | unstable rolling encrypted headless bootable minimal proprietary read-only rootless outdated sandboxed
        upstream""",
    "weather": """thunderstorm forecast hurricane drizzle barometer humidity heatwave blizzard fog cloud rainfall
        radar jetstream tornado lightning gust frost anemometer snowdrift monsoon front hail rainbow sleet
        thermometer drought cyclone warning-siren gale ice-storm sunset dew downpour season flood pressure-chart
        | forecast measure predict record monitor track soak flood chill log drench chart issue batter
        | humid overcast stormy breezy freezing muggy chilly torrential subtropical scorching unsettled mild""",
}

_IRREGULAR = {
    "read": "read",
    "sing": "sang",
    "teach": "taught",
    "feed": "fed",
    "deal": "dealt",
    "draw": "drew",
    "withdraw": "withdrew",
    "dig": "dug",
    "cast": "cast",
    "overthrow": "overthrew",
    "reread": "reread",
    "reshoot": "reshot",
    "overtake": "overtook",
    "override": "overrode",
    "remake": "remade",
    "squat": "squatted",
    "debug": "debugged",
    "transfer": "transferred",
    "format": "formatted",
    "repot": "repotted",
    "forecast": "forecast",
}


def past_tense(verb: str) -> str:
    """Past tense of a verb, a particle after the hyphen or space kept: ``tuck-in`` -> ``tucked in``."""
    stem, _, particle = verb.partition("-")
    if stem in _IRREGULAR:
        form = _IRREGULAR[stem]
    elif stem.endswith("e"):
        form = stem + "d"
    elif stem.endswith("y") and stem[-2] not in "aeiou":
        form = stem[:-1] + "ied"
    elif (
        stem[-1] not in "aeiouwxy"
        and stem[-2] in "aeiou"
        and stem[-3:-2] not in tuple("aeiou")
        and sum(c in "aeiou" for c in stem) == 1
    ):
        form = stem + stem[-1] + "ed"
    else:
        form = stem + "ed"
    return f"{form} {particle}".strip()


def _compile(lines: str) -> dict[str, list[str]]:
    nouns, verbs, adjectives = (part.split() for part in lines.split("|"))
    return {
        "N": [noun.replace("-", " ") for noun in nouns],
        "V": [verb.replace("-", " ") for verb in verbs],
        "VD": [past_tense(verb) for verb in verbs],
        "AJ": adjectives,
    }


TOPICS = {name: _compile(lines) for name, lines in _TOPICS.items()}


def _phrases(text: str) -> list[str]:
    return [" ".join(phrase.split()) for phrase in text.split(";")]


# words that say nothing about the topic or the author
GENERAL = {
    "GN": """approach detail question thing problem option setup result reason mistake choice version trick plan
        moment guide list habit lesson step test answer detour shortcut routine method side price budget change
        rule surprise goal compromise upgrade mess""".split(),
    "GA": """simple useful cheap old new common strange different important easy tricky reliable expensive normal
        obvious rare clean slow fast tidy fair wrong popular small big fresh boring safe careful quiet""".split(),
    "GV": """check improve explain handle ignore remember skip consider compare repair share notice prepare avoid
        finish support replace discuss enjoy attempt protect copy manage mention order collect describe store
        follow question""".split(),
    "TIME": _phrases("""yesterday; last week; this morning; last summer; a month ago; on Sunday; over the weekend;
        a few years ago; last night; before lunch; on Tuesday; in March; after work; back in October; the other day;
        at the start of the year; late on Friday; on holiday; once again; during the winter"""),
    "PERS": _phrases("""my brother; a friend; the woman across the hall; someone at work; my partner; the guy next
        door; my old teacher; a cousin of mine; one of the regulars; my boss; an old colleague; my sister; somebody
        here; the shop owner; my uncle; a stranger online"""),
    "PLACE": _phrases("""at home; in the city; at the club; near the station; in the garage; online; in my street;
        at work; abroad; in the next town; at the local shop; on the balcony; at school; in the basement"""),
}

# British and American forms
SPELLING = {
    "SN": """colour:color flavour:flavor behaviour:behavior centre:center catalogue:catalog rumour:rumor
        labour:labor dialogue:dialog defence:defense fibre:fiber honour:honor favour:favor programme:program
        licence:license humour:humor""".split(),
    "SV": """realise:realize recognise:recognize organise:organize prioritise:prioritize analyse:analyze
        criticise:criticize summarise:summarize standardise:standardize optimise:optimize customise:customize
        minimise:minimize favour:favor honour:honor memorise:memorize""".split(),
    "SA": """favourite:favorite grey:gray coloured:colored organised:organized travelled:traveled
        specialised:specialized modernised:modernized flavoured:flavored unauthorised:unauthorized
        mould-proof:mold-proof""".split(),
}

# two ways to say the same; the trait named like the slot is the probability of the second
PAIRS = {
    "THAT": ("that", "which"),
    "WHILE": ("while", "whereas"),
    "BUT": ("but", "however"),
    "SO": ("so", "therefore"),
    "MAYBE": ("maybe", "perhaps"),
    "MUCH": ("a lot", "much"),
    "BECAUSE": ("because", "since"),
    "TOO": ("too", "also"),
    "EVERYONE": ("everyone", "everybody"),
    "UNTIL": ("until", "till"),
    "ABOUT": ("about", "around"),
    "NEED": ("need to", "have to"),
    "ALTHOUGH": ("although", "even though"),
    "BIT": ("a bit", "a little"),
    "LIKE": ("such as", "like"),
    "AND": ("and", "&"),
    "OK": ("ok", "okay"),
    "TOWARD": ("toward", "towards"),
    "OFTEN": ("often", "usually"),
    "WHOLE": ("the whole", "the entire"),
}

# full and contracted form; without its apostrophe by another habit
CONTRACTIONS = {
    "DO_NOT": ("do not", "don't"),
    "DID_NOT": ("did not", "didn't"),
    "IS_NOT": ("is not", "isn't"),
    "CANNOT": ("cannot", "can't"),
    "WOULD_NOT": ("would not", "wouldn't"),
    "I_AM": ("I am", "I'm"),
    "I_HAVE": ("I have", "I've"),
    "IT_IS": ("it is", "it's"),
    "YOU_ARE": ("you are", "you're"),
    "THAT_IS": ("that is", "that's"),
    "WAS_NOT": ("was not", "wasn't"),
    "I_WOULD": ("I would", "I'd"),
}

ABBREVIATIONS = {
    "YOU": ("you", "u"),
    "PLEASE": ("please", "pls"),
    "BY_THE_WAY": ("by the way", "btw"),
    "THOUGH": ("though", "tho"),
    "PEOPLE": ("people", "ppl"),
    "WITH": ("with", "w/"),
}

NUMBERS = "two three four five six seven eight nine ten twelve".split()
DIGITS = "2 3 4 5 6 7 8 9 10 12".split()

# one of several, each author with preferences of their own
CHOICES = {
    "intensifier": "very really so quite pretty super".split(),
    "praise": "great nice lovely amazing solid awesome".split(),
    "blame": "bad terrible awful poor weird annoying".split(),
    "hedge": _phrases("I think; I guess; in my opinion; it seems; I suppose; probably"),
    "opener": _phrases(
        "well; tbh; honestly; to be fair; actually; hmm; yeah; ok so; look; interesting"
    ),
    "closer": _phrases(
        "cheers; thanks; hope that helps; good luck; just my two cents; ymmv; have fun; thank you"
    ),
    "link": ["AND", "BUT", "BECAUSE", "WHILE", "SO", "ALTHOUGH", "DASH", "THAT_IS why"],
    "voice": "personal impersonal advice question".split(),
    "end": [".", "!", "...", "!!"],
    "emoji": ["🙂", "😂", "👍", "🤔", "🎉", "😅", ":)", ":-)", ":D", ";)", "xD", ":P"],
    "typo": "dropped swapped doubled".split(),
    "quote": ['"', "'", "“", "*"],
    "dash": ["-", "--", "—", ";"],
}

# name: (median probability, spread in logits, loading on casual)
TRAITS = {
    "british": (0.35, 2.5, 0.0),  # spells the British way, per word
    "contraction": (0.55, 1.5, 0.5),  # per place where one is possible
    "no_apostrophe": (0.06, 1.8, 0.8),  # "dont", per contraction
    "lower_case": (0.12, 2.4, 0.9),  # no capitals, per post
    "no_final": (0.20, 2.4, 0.8),  # no mark at the end, per post
    "double_mark": (0.20, 2.4, 0.3),  # "??", per question
    "abbreviation": (0.08, 1.8, 0.9),  # "u", "pls", "btw", per place
    "digits": (0.5, 2.2, 0.2),  # "3" and not "three", per number
    "opener": (0.20, 1.0, 0.3),  # per sentence
    "opener_comma": (0.6, 2.4, -0.4),  # per opener
    "closer": (0.10, 1.2, 0.0),  # per post
    "emoji": (0.12, 1.5, 0.7),  # per post
    "hedged": (0.15, 1.0, 0.0),  # a hedge in front of a statement, per sentence
    "linked": (0.30, 0.9, -0.3),  # a second clause, per statement
    "typo": (0.012, 0.9, 0.4),  # per word of four letters or more
    "double_space": (0.20, 3.0, 0.0),  # after a sentence, per post
    "small_i": (0.20, 3.0, 0.9),  # "i" for "I", per post
    "spaced_mark": (0.20, 3.0, 0.0),  # a space before any mark but the full stop, per sentence
    "fronted": (0.35, 2.2, 0.0),  # time or place at the front, per statement that has one
    "front_comma": (0.5, 2.6, -0.3),  # after it
    "hedge_last": (0.35, 2.4, 0.0),  # a hedge at the end, per hedged statement
    "clause_comma": (0.45, 2.6, -0.4),  # before a second clause
    "shout": (0.03, 1.5, 0.5),  # an intensifier in capitals, per place
}
PAIR = (0.40, 1.8, 0.0)  # every trait of PAIRS

# of the Dirichlet over each choice's options: small means that an author keeps to one or two of them
CONCENTRATION = {
    "intensifier": 0.8,
    "praise": 0.8,
    "blame": 0.8,
    "hedge": 0.8,
    "opener": 0.5,
    "closer": 0.5,
    "link": 1.0,
    "voice": 4.0,
    "end": 0.9,
    "emoji": 0.25,
    "typo": 0.8,
    "quote": 0.5,
    "dash": 0.5,
}
END_PRIOR = [6.0, 1.2, 0.6, 0.3]  # the common preference among the marks of "end"

# sentence patterns by the author's voice
PATTERNS = {
    voice: [line.split() for line in lines.strip().splitlines()]
    for voice, lines in {
        "personal": """
I VD the N TIME AND it was INTENSIFIER AJ
I DO_NOT think the N is AJ enough for my N
I_HAVE got NUM N photos PLACE , mostly of the AJ N
PERS VD my N TIME AND I noticed the SN
HEDGE my N PLACE is INTENSIFIER GA for EVERYONE
I_AM trying to V the N UNTIL it looks PRAISE
I DID_NOT SV the N WITH the AJ N TIME
I VD ABOUT NUM hours on that AJ N TIME
HEDGE the GN of my N WAS_NOT that BLAME
I_WOULD GV the SA N before I V it
my N THAT I VD TIME turned out INTENSIFIER PRAISE
I OFTEN V the N PLACE WITH PERS
TIME I VD WHOLE N AND learned MUCH
I_AM BIT GA WITH QN THOUGH my N works
I SV the AJ N now , my N improved MUCH
we VD the N PLACE AND PERS VD the N TOO
I WOULD_NOT GV another SA N for NUM bucks
I moved the N TOWARD the AJ N TIME , it felt OK""",
        "impersonal": """
the N THAT came WITH the N was INTENSIFIER AJ
HEDGE the AJ N is INTENSIFIER BLAME PLACE
IT_IS INTENSIFIER GA to V the N TIME
the SN of the N IS_NOT GA for PEOPLE PLACE
most PEOPLE SV the N before the N
THAT_IS BIT GA for EVERYONE WITH some GA N
MAYBE the GN is the N , not the AJ N
PERS says QN is INTENSIFIER PRAISE for the N
there are ABOUT NUM ways to V the AJ N
the SA N IS_NOT as AJ as the N
the N LIKE QN costs MUCH PLACE
WHOLE GN WITH the N looks OK TIME
the N VD the N AND the GN was INTENSIFIER PRAISE
the AJ N went TOWARD the N UNTIL PERS VD it
one GA SN THAT PEOPLE OFTEN GV is the AJ N
MAYBE the N DID_NOT V the N TIME
it WAS_NOT the N THAT VD the AJ GN""",
        "advice": """
PLEASE V the N before YOU GV the AJ N
YOU NEED V the N UNTIL it is INTENSIFIER AJ
YOU_ARE better off WITH another GA N , MAYBE for NUM weeks
DO_NOT GV the N THAT PERS VD TIME
YOU NEED SV the N AND V the N TOO
try to V the N WITH QN , IT_IS PRAISE
PLEASE DO_NOT V the AJ N PLACE
YOU can GV the SN of the N , HEDGE
GV the N BIT AND then V ABOUT NUM of them
BY_THE_WAY the AJ N helps MUCH for the SA N
YOU CANNOT V WHOLE N TIME , MAYBE GV the GN
always V the AJ N LIKE PERS does""",
        "question": """
did PERS V the N TIME
does EVERYONE SV the N WITH the AJ N
BY_THE_WAY what is the SN of the AJ N
why WOULD_NOT the N V WHOLE N
how many of YOU VD the N PLACE , MAYBE NUM
is the SA N INTENSIFIER AJ TOO
HEDGE the N is PRAISE THOUGH , how do YOU V it
can PERS PLEASE GV the AJ N PLACE
is QN OFTEN this AJ , or IS_NOT it the N""",
    }.items()
}

GRAIN = 128  # a habit is a list of about this length


def slot_fillings(row) -> dict[str, list[str]]:
    """Slot -> what an author with these habits fills it with: a list to be drawn from uniformly."""
    slots = dict(GENERAL)
    for name, forms in PAIRS.items():
        slots[name] = _listed(forms, (1 - row[name.lower()], row[name.lower()]))
    for name, forms in ABBREVIATIONS.items():
        slots[name] = _listed(forms, (1 - row["abbreviation"], row["abbreviation"]))
    short, bare = row["contraction"], row["no_apostrophe"]
    for name, (full, form) in CONTRACTIONS.items():
        shares = (1 - short, short * (1 - bare), short * bare)
        slots[name] = _listed((full, form, form.replace("'", "")), shares)
    for name, words in SPELLING.items():
        shares = (row["british"], 1 - row["british"])
        slots[name] = [form for word in words for form in _listed(word.split(":"), shares)]
    shares = (1 - row["digits"], row["digits"])
    slots["NUM"] = [form for forms in zip(NUMBERS, DIGITS) for form in _listed(forms, shares)]
    for name, options in CHOICES.items():
        slots[name.upper()] = _listed(options, [row[f"{name}_{option}"] for option in options])
    shout = int(row["shout"] * GRAIN)
    slots["INTENSIFIER"] = [
        word.upper() if at % GRAIN < shout else word  # 37: spread over all the words
        for at, word in zip(count(0, 37), slots["INTENSIFIER"])
    ]
    return slots


def _listed(options, shares) -> list[str]:
    """A list of about GRAIN entries that holds each option as often as its share says."""
    times = np.rint(np.asarray(shares) * GRAIN).astype(int).tolist()
    return [option for option, n in zip(options, times) for _ in range(n)]
