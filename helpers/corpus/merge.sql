-- The steps of a merge, see merge.py. A step is a query; its rows go to the table of its name,
-- which is declared here. `round` tells the repetitions of a step apart. The number of a post is its
-- row: posts are in the order of author, time, text, topic and id.

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
                     is_changed BOOLEAN);
CREATE TABLE posts (post BIGINT, author VARCHAR, time BIGINT, topic VARCHAR, text VARCHAR,
                    id VARCHAR, normal VARCHAR);
CREATE TABLE keys (post BIGINT, time BIGINT, high UBIGINT, low UBIGINT, round INT);
CREATE TABLE copies (post BIGINT);
CREATE TABLE marks (hash UBIGINT, posts BIGINT, is_owner BOOLEAN, post BIGINT, words INT,
                    round INT);
CREATE TABLE signed (post BIGINT, words INT, round INT);
CREATE TABLE shortened (post BIGINT, words INT, text VARCHAR, normal VARCHAR);
CREATE TABLE bands (post BIGINT, time BIGINT, key UBIGINT);
CREATE TABLE pairs (post BIGINT, earlier BIGINT);
CREATE TABLE shingled (post BIGINT, earlier BIGINT, shingles UBIGINT[]);
CREATE TABLE near_copies (post BIGINT);

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

-- [masked] posts without names
SELECT author, time, topic, masked AS text, id, masked != text AS is_changed
FROM (SELECT coalesce(shown, r.author) AS author, time, mask_topic(topic) AS topic, text, id,
             mask_names(text) AS masked
      FROM file_rows r LEFT JOIN shown_names s ON r.author = s.author)

-- [posts] sorted and numbered
SELECT row_number() OVER () - 1 AS post, *
FROM (SELECT author, time, topic, text, id, normal(text) AS normal FROM masked
      WHERE length(text) >= getvariable('min_chars') ORDER BY author, time, text, topic, id)

-- [keys] hashes of normal texts
SELECT post, time, md5_number_upper(normal) AS high, md5_number_lower(normal) AS low,
       getvariable('round') AS round
FROM left_posts

-- [copies] all but the first of posts with the same normal text
SELECT post FROM keys WHERE round = getvariable('round')
QUALIFY row_number() OVER (PARTITION BY high, low ORDER BY time, post) > 1

-- [runs] made for the two steps after it. `ends` holds the last words of posts, without those that
-- earlier rounds cut, and `floors` how many posts of an author must end with a run. A run is
-- frequent only where the run without its first word is: so `runs` grow from the last word, and
-- hold what some author repeats. One that is not fresh ends no post from which the round before cut
-- words
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
CREATE OR REPLACE TABLE runs AS
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
                   JOIN floors USING (author) WHERE posts >= floor)
    UNION ALL
    (WITH longer AS (
        SELECT post, author, words, size + 1 AS size, hash(words[-size - 1:]) AS hash, is_fresh
        FROM grown WHERE len(words) > size AND size < getvariable('max_run_words'))
    SELECT * FROM longer
    WHERE hash IN (SELECT hash FROM (SELECT author, hash, count(*) AS posts FROM longer
                                     GROUP BY author, hash HAVING bool_or(is_fresh))
                   JOIN floors USING (author) WHERE posts >= floor)))
SELECT post, author, size, hash, is_fresh,
       CASE WHEN len(words) > size THEN hash(words[-size - 1]) ELSE 0 END AS prior
FROM grown

-- [marks] how many posts of each author end with a run, and which (these rows have a post); a
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
SELECT *, getvariable('round') AS round FROM counted

-- [signed] posts that end with a signature, a run that few people use
WITH counted AS (FROM marks WHERE round = getvariable('round')),
signatures AS (
    SELECT hash FROM counted WHERE hash IS NOT NULL AND post IS NULL GROUP BY hash
    HAVING sum(posts) FILTER (is_owner) >= getvariable('min_exclusive') * sum(posts)
    AND count(*) FILTER (is_owner) BETWEEN 1 AND greatest(1, least(
        getvariable('max_authors'),
        (SELECT sum(posts) FROM counted WHERE hash IS NULL) // getvariable('authors_each'))))
SELECT post, max(words) AS words, getvariable('round') AS round
FROM counted SEMI JOIN signatures USING (hash) WHERE post IS NOT NULL GROUP BY post

-- [shortened] posts with a signature, without it
SELECT post, s.words, cut_words(text, s.words) AS text, cut_words(normal, s.words) AS normal
FROM posts JOIN (SELECT post, sum(words)::INT AS words FROM signed GROUP BY post) s USING (post)

-- [bands] keys of the MinHash bands of posts, by key; a short post is no near copy, and one that a
-- bridge repeats, "<jane> hello", is later than what it repeats
SELECT post, time, key
FROM (SELECT post, time, unnest(band_keys(shingles(words))) AS key
      FROM (SELECT post, time + 10000000000 * starts_with(normal, '<@user> ')::BIGINT AS time,
                   string_split(normal, ' ') AS words FROM left_posts)
      WHERE len(words) >= getvariable('min_words'))

-- [pairs] posts to compare, by the later. To compare all posts that share a key would take
-- quadratic time where a form letter is sent a thousand times: each is paired with the first of
-- them and with the last three before it
SELECT DISTINCT post, earlier
FROM (SELECT post, unnest([first_value(post) OVER w, lag(post) OVER w, lag(post, 2) OVER w,
                           lag(post, 3) OVER w]) AS earlier
      FROM bands SEMI JOIN (SELECT key FROM bands GROUP BY key HAVING count(*) > 1) USING (key)
      WINDOW w AS (PARTITION BY key ORDER BY time, post))
WHERE earlier != post

-- [shingled] pairs with the later post's shingles, by the earlier
SELECT post, earlier, shingles(words) AS shingles
FROM (SELECT DISTINCT post, earlier FROM pairs)
JOIN (SELECT post, string_split(normal, ' ') AS words FROM left_posts) USING (post)

-- [near_copies] later posts of pairs that are similar
SELECT DISTINCT p.post
FROM shingled p
JOIN (SELECT post, shingles(string_split(normal, ' ')) AS shingles
      FROM left_posts WHERE post IN (SELECT earlier FROM shingled)) e ON e.post = p.earlier
WHERE jaccard(p.shingles, e.shingles) >= getvariable('near_duplicate')

-- [counts]
SELECT (SELECT count(*) FILTER (is_changed) FROM masked) AS names_masked,
       (SELECT count(*) FILTER (length(text) < getvariable('min_chars')) FROM masked)
           AS short_after_names,
       count(*) AS signatures_cut, coalesce(sum(words), 0)::BIGINT AS signature_words_cut,
       count(*) FILTER (length(text) < getvariable('min_chars')) AS short_after_signature,
       (SELECT count(*) FROM copies) AS duplicate,
       (SELECT count(DISTINCT post) FROM near_copies) AS near_duplicate
FROM shortened
