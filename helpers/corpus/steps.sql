-- The steps of a merge, see merge.py. A step is a query; its rows go to the table of its name,
-- which is declared here. Where there are many partitions, each step is run for each of them, and:
--   the variable `number` is that of the partition,
--   a step sees those rows of earlier steps that have this number in the column `bucket`. Of
--   `posts`, `shortened` and `final` it sees what the same partition wrote; of `candidates` and
--   `marks`, all.
-- `round` tells the repetitions of a step apart. The number of a post is that of its partition,
-- shifted by 32 bits, plus its row there: posts are in the order of author, time, text, topic and
-- id.

-- [constants]
-- words of a signature at most, and characters at the end of a post that are searched for it
SET VARIABLE max_run_words = 24;
SET VARIABLE max_end_chars = 1000;
-- an author signs with a run that ends so many posts, and so large a share of the author's posts,
-- and follows so many different words there: so it is a unit and not the end of a form letter
SET VARIABLE min_posts = 3;
SET VARIABLE min_share = 0.03;
-- a run is a signature where so large a share of the posts that end with it is of authors who sign
-- with it: one, or one per so many authors of the corpus, and so many at most. One person may write
-- from several addresses; a small corpus shares habits
SET VARIABLE min_exclusive = 0.9;
SET VARIABLE max_authors = 6;
SET VARIABLE authors_each = 200;
-- a shorter post has too few runs of words to be called a near copy
SET VARIABLE min_words = 8;

-- [tables]
CREATE TABLE masked (author VARCHAR, time BIGINT, topic VARCHAR, text VARCHAR, id VARCHAR,
                     is_changed BOOLEAN, bucket INT);
CREATE TABLE posts (post BIGINT, author VARCHAR, time BIGINT, topic VARCHAR, text VARCHAR,
                    id VARCHAR, normal VARCHAR, bucket INT);
CREATE TABLE keys (post BIGINT, time BIGINT, high UBIGINT, low UBIGINT, round INT, bucket INT);
CREATE TABLE copies (post BIGINT, bucket INT);
CREATE TABLE candidates (hash UBIGINT, round INT, bucket INT);
CREATE TABLE marks (hash UBIGINT, posts BIGINT, is_owner BOOLEAN, post BIGINT, words INT,
                    round INT, bucket INT);
CREATE TABLE signed (post BIGINT, words INT, round INT, bucket INT);
CREATE TABLE shortened (post BIGINT, words INT, text VARCHAR, normal VARCHAR, bucket INT);
CREATE TABLE bands (post BIGINT, time BIGINT, key UBIGINT, bucket INT);
CREATE TABLE pairs (post BIGINT, earlier BIGINT, bucket INT);
CREATE TABLE shingled (post BIGINT, earlier BIGINT, shingles UBIGINT[], bucket INT);
CREATE TABLE near_copies (post BIGINT, bucket INT);
CREATE TABLE final (author VARCHAR, time BIGINT, topic VARCHAR, text VARCHAR, id VARCHAR,
                    bucket INT);

-- [views]
-- a text without its last words and the white space before them
CREATE MACRO cut_words(text, words) AS
    array_to_string(regexp_extract_all(text, getvariable('word'))[:-words - 1], '');
-- hashes of all runs of three words
CREATE MACRO shingles(words) AS
    list_transform(list_zip(words, words[2:], words[3:], true), lambda run: hash(run));
CREATE MACRO jaccard(a, b) AS len(list_intersect(a, b)) / len(list_distinct(list_concat(a, b)));
CREATE VIEW dropped AS
    SELECT post FROM copies
    UNION ALL SELECT post FROM near_copies
    UNION ALL SELECT post FROM shortened WHERE length(text) < getvariable('min_chars');
-- posts without signatures, so far
CREATE VIEW left_posts AS
    SELECT p.* REPLACE (coalesce(s.text, p.text) AS text, coalesce(s.normal, p.normal) AS normal)
    FROM posts p LEFT JOIN shortened s USING (post) ANTI JOIN dropped d ON p.post = d.post;

-- [masked] posts without names, by author
SELECT p.author, time, topic, masked AS text, id, masked != text AS is_changed, bucket
FROM (SELECT coalesce(shown, r.author) AS author, time, topic, text, id, mask_names(text) AS masked
      FROM file_rows r LEFT JOIN shown_names s ON r.author = s.author) p
ASOF JOIN ranges ON p.author >= first

-- [posts] of an author's range, sorted and numbered
SELECT (getvariable('number')::BIGINT << 32) + row_number() OVER () - 1 AS post, *
FROM (SELECT author, time, topic, text, id, normal(text) AS normal, bucket FROM masked
      WHERE length(text) >= getvariable('min_chars') ORDER BY author, time, text, topic, id)

-- [keys] hashes of normal texts, by hash
SELECT post, time, md5_number_upper(normal) AS high, md5_number_lower(normal) AS low,
       getvariable('round') AS round, low % getvariable('partitions') AS bucket
FROM left_posts

-- [copies] all but the first of posts with the same normal text
SELECT post, post >> 32 AS bucket FROM keys WHERE round = getvariable('round')
QUALIFY row_number() OVER (PARTITION BY high, low ORDER BY time, post) > 1

-- [runs] made for the two steps after it. `ends` holds the last words of posts, without those that
-- earlier rounds cut, and `floors` how many posts of an author must end with a run. A run is
-- frequent only where the run without its first word is: so `runs` grow from the last word, and
-- hold what some author repeats, of the partition or, where candidates are known, of any. One that
-- is not fresh ends no post from which the round before cut words
CREATE TABLE IF NOT EXISTS ends (post BIGINT, author UBIGINT, words VARCHAR[]);
DELETE FROM ends WHERE post IN (SELECT post FROM signed WHERE round = getvariable('round') - 1);
INSERT INTO ends
SELECT post, author, words[-getvariable('max_run_words') - 1:]
FROM (SELECT post, author, words[:greatest(len(words) - coalesce(cut, 0), 0)] AS words
      FROM (SELECT post, hash(author) AS author,
                   string_split(ltrim(right(normal, getvariable('max_end_chars'))), ' ') AS words
            FROM left_posts WHERE post NOT IN (SELECT post FROM ends))
      LEFT JOIN (SELECT post, sum(words)::INT AS cut FROM signed GROUP BY post) USING (post));
CREATE TABLE IF NOT EXISTS floors AS
SELECT author,
       greatest(getvariable('min_posts'), ceil(getvariable('min_share') * count(*))) AS floor
FROM ends GROUP BY author;
CREATE TABLE IF NOT EXISTS runs AS
WITH RECURSIVE grown AS (
    WITH longer AS (
        SELECT post, author, words, 1 AS size, hash(words[-1:]) AS hash,
               getvariable('round') = 0
               OR post IN (SELECT post FROM signed WHERE round = getvariable('round') - 1)
                   AS is_fresh
        FROM ends WHERE len(words) > 0)
    SELECT * FROM longer
    WHERE hash IN (SELECT hash FROM (SELECT author, hash, count(*) AS posts FROM longer
                                     GROUP BY author, hash HAVING bool_or(is_fresh))
                   JOIN floors USING (author) WHERE posts >= floor
                   UNION ALL
                   SELECT hash FROM candidates WHERE round = getvariable('round'))
    UNION ALL
    (WITH longer AS (
        SELECT post, author, words, size + 1 AS size, hash(words[-size - 1:]) AS hash, is_fresh
        FROM grown WHERE len(words) > size AND size < getvariable('max_run_words'))
    SELECT * FROM longer
    WHERE hash IN (SELECT hash FROM (SELECT author, hash, count(*) AS posts FROM longer
                                     GROUP BY author, hash HAVING bool_or(is_fresh))
                   JOIN floors USING (author) WHERE posts >= floor
                   UNION ALL
                   SELECT hash FROM candidates WHERE round = getvariable('round'))))
SELECT post, author, size, hash, is_fresh,
       CASE WHEN len(words) > size THEN hash(words[-size - 1]) ELSE 0 END AS prior
FROM grown

-- [candidates] runs that an author of the partition repeats
SELECT DISTINCT hash, getvariable('round') AS round, 0 AS bucket FROM runs

-- [marks] how many posts of each author end with a candidate, and which (these rows have a post); a
-- row without hash counts the authors
WITH uses AS (
    SELECT hash, author, count(*) AS posts, count(DISTINCT prior) AS priors,
           bool_or(is_fresh) AS is_fresh
    FROM runs GROUP BY hash, author),
owners AS (
    SELECT *, posts >= floor AND priors >= getvariable('min_posts') AS is_owner
    FROM uses JOIN floors USING (author)),
counted AS (
    SELECT hash, posts, is_owner, NULL::BIGINT AS post, NULL::INT AS words FROM owners
    UNION ALL
    SELECT hash, NULL, NULL, post, size
    FROM runs SEMI JOIN (FROM owners WHERE is_owner AND is_fresh) USING (hash, author)
    UNION ALL
    SELECT NULL, count(*), NULL, NULL, NULL FROM floors)
SELECT *, getvariable('round') AS round, 0 AS bucket FROM counted

-- [signed] posts that end with a signature, a candidate that few people use
WITH counted AS (FROM marks WHERE round = getvariable('round')),
signatures AS (
    SELECT hash FROM counted WHERE hash IS NOT NULL AND post IS NULL GROUP BY hash
    HAVING sum(posts) FILTER (is_owner) >= getvariable('min_exclusive') * sum(posts)
    AND count(*) FILTER (is_owner) BETWEEN 1 AND greatest(1, least(
        getvariable('max_authors'),
        (SELECT sum(posts) FROM counted WHERE hash IS NULL) // getvariable('authors_each'))))
SELECT post, max(words) AS words, getvariable('round') AS round, post >> 32 AS bucket
FROM counted SEMI JOIN signatures USING (hash) WHERE post IS NOT NULL GROUP BY post

-- [shortened] posts with a signature, without it
SELECT post, s.words, cut_words(text, s.words) AS text, cut_words(normal, s.words) AS normal, bucket
FROM posts JOIN (SELECT post, sum(words)::INT AS words FROM signed GROUP BY post) s USING (post)

-- [bands] keys of the MinHash bands of posts, by key; a short post is no near copy
SELECT post, time, key, key % getvariable('partitions') AS bucket
FROM (SELECT post, time, unnest(band_keys(shingles(words))) AS key
      FROM (SELECT post, time, string_split(normal, ' ') AS words FROM left_posts)
      WHERE len(words) >= getvariable('min_words'))

-- [pairs] posts to compare, by the later. To compare all posts that share a key would take
-- quadratic time where a form letter is sent a thousand times: each is paired with the first of
-- them and with the last three before it
SELECT DISTINCT post, earlier, post >> 32 AS bucket
FROM (SELECT post, unnest([first_value(post) OVER w, lag(post) OVER w, lag(post, 2) OVER w,
                           lag(post, 3) OVER w]) AS earlier
      FROM bands SEMI JOIN (SELECT key FROM bands GROUP BY key HAVING count(*) > 1) USING (key)
      WINDOW w AS (PARTITION BY key ORDER BY time, post))
WHERE earlier != post

-- [shingled] pairs with the later post's shingles, by the earlier
SELECT post, earlier, shingles(words) AS shingles, earlier >> 32 AS bucket
FROM (SELECT DISTINCT post, earlier FROM pairs)
JOIN (SELECT post, string_split(normal, ' ') AS words FROM left_posts) USING (post)

-- [near_copies] later posts of pairs that are similar
SELECT DISTINCT p.post, p.post >> 32 AS bucket
FROM shingled p
JOIN (SELECT post, shingles(string_split(normal, ' ')) AS shingles
      FROM left_posts WHERE post IN (SELECT earlier FROM shingled)) e ON e.post = p.earlier
WHERE jaccard(p.shingles, e.shingles) >= getvariable('near_duplicate')

-- [final] the posts that are left
SELECT author, time, topic, text, id, bucket FROM left_posts

-- [counts]
SELECT (SELECT count(*) FILTER (is_changed) FROM masked) AS names_masked,
       (SELECT count(*) FILTER (length(text) < getvariable('min_chars')) FROM masked)
           AS short_after_names,
       count(*) AS signatures_cut, coalesce(sum(words), 0)::BIGINT AS signature_words_cut,
       count(*) FILTER (length(text) < getvariable('min_chars')) AS short_after_signature,
       (SELECT count(*) FROM copies) AS duplicate,
       (SELECT count(DISTINCT post) FROM near_copies) AS near_duplicate
FROM shortened
