-- Usage by model and stage, superseded calls apart, in the order of `ModelStats`.
-- Of a failed attempt the stage is that of its call; none if it was never answered.
WITH used AS (
    SELECT
        model, stage, prompt_tokens, completion_tokens, cached_tokens, cost_usd, latency_s,
        0 AS superseded, outcome
    FROM calls
    UNION ALL
    SELECT
        model, stage, prompt_tokens, completion_tokens, cached_tokens, cost_usd, latency_s, 1,
        outcome
    FROM superseded
    UNION ALL
    SELECT tried.model, coalesce(stage, ''), 0, 0, 0, NULL, 0.0, 0, NULL
    FROM attempts AS tried LEFT JOIN calls USING (key)
)
-- total() of absurd counts that an older version stored does not overflow, as sum() does.
SELECT
    model,
    stage,
    count(outcome),
    count(*) - count(outcome),
    CAST(total(prompt_tokens) AS INTEGER),
    CAST(total(completion_tokens) AS INTEGER),
    CAST(total(cached_tokens) AS INTEGER),
    sum(cost_usd),
    count(outcome) - count(cost_usd),
    total(latency_s),
    superseded,
    json_group_array(outcome) FILTER (WHERE outcome IS NOT NULL)
FROM used
GROUP BY model, stage, superseded
ORDER BY count(outcome) = 0, model, stage, superseded
