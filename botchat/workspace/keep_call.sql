-- A row of `StoredCall`, in the order of its fields. A published run brings no forgotten answer back.
WITH new (
    key, model, stage, at, outcome, text, finish_reason, prompt_tokens, completion_tokens,
    cached_tokens, latency_s, cost_usd, detail, sent, request, raw
) AS (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))
INSERT OR IGNORE INTO calls (
    key, model, stage, at, outcome, text, finish_reason, prompt_tokens, completion_tokens,
    cached_tokens, latency_s, cost_usd, detail, sent, request, raw
)
SELECT * FROM new
WHERE NOT EXISTS
    (SELECT 1 FROM superseded WHERE superseded.key = new.key AND superseded.at = new.at)
