-- Place in the list, tokens, USD and seconds of calls. They are looked up one by one: IN would make a tree of the keys first.
WITH found AS (
    SELECT
        k.key AS place,
        calls.*,
        coalesce(prompt_tokens, completion_tokens) IS NULL
            AND outcome NOT IN ('ok', 'truncated') AS is_free
    FROM json_each(?) AS k CROSS JOIN calls ON calls.key = k.value
)
SELECT
    place,
    iif(is_free, 0, prompt_tokens + completion_tokens),
    iif(is_free, 0.0, cost_usd) AS cost_usd,
    latency_s
FROM found
