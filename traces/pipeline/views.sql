-- The questions that a corpus answers once it is judged. Spark SQL and DuckDB run each statement as it is.
-- The line before a view says what it answers. A column that is named like a word of SQL has its table before it.

-- Did the broker, or a client, break the protocol, and where?
CREATE OR REPLACE TEMPORARY VIEW violations AS
SELECT coalesce(f.at, e.at) AS at, f.trace, f.sequence, f.group, f.kind, f.requirement, f.api, f.title, f.observed,
  f.allowed
FROM findings f
LEFT JOIN events e ON e.trace = f.trace AND e.sequence = f.sequence
WHERE f.kind IN ('violation', 'member-failure')
ORDER BY f.trace, f.sequence NULLS LAST, f.requirement NULLS LAST;

-- Were there two leaders, a stale commit that was accepted, or two owners in one generation?
CREATE OR REPLACE TEMPORARY VIEW broken_invariants AS
SELECT e.at, b.what, b.trace, b.sequence, b.group, b.generation
FROM (
  SELECT 'two leaders' AS what, l.trace, l.group, l.generation, l.sequence FROM one_leader l
  UNION ALL
  SELECT 'stale commit' AS what, c.trace, c.group, c.generation, c.sequence FROM no_stale_commit c
  UNION ALL
  SELECT 'two owners' AS what, o.trace, o.group, o.generation, o.sequence FROM one_owner o
) b
LEFT JOIN events e ON e.trace = b.trace AND e.sequence = b.sequence
ORDER BY b.trace, b.sequence;

-- Which rebalances took long, which are not over, and whom did they wait for?
CREATE OR REPLACE TEMPORARY VIEW slow_rebalances AS
SELECT r.at, r.trace, r.group, r.generation, r.ms, r.join_ms, r.sync_ms, r.is_over, r.cause, r.culprit, r.awaited,
  r.held, r.held_ms
FROM rebalances r
ORDER BY r.is_over, r.ms DESC, r.trace, r.time;

-- Who was in which group, on which client and library, from when to when, and why did they go?
CREATE OR REPLACE TEMPORARY VIEW members AS
SELECT m.trace, m.group, m.member, m.instance, m.client, l.library, l.version, m.came, m.went, m.why, m.reason
FROM memberships m
LEFT JOIN (
  SELECT t.first_file AS trace, j.group, j.member_id, max(v.library) AS library, max(v.library_version) AS version
  FROM events j
  JOIN whole_traces t ON t.trace = j.trace
  JOIN whole_traces u ON u.first_file = t.first_file
  JOIN events v ON v.trace = u.trace AND v.connection = j.connection AND v.library IS NOT NULL
  WHERE j.api = 'JoinGroup' AND j.kind = 'response' AND j.member_id <> ''
  GROUP BY t.first_file, j.group, j.member_id
) l ON l.trace = m.trace AND l.group = m.group AND l.member_id = m.member
ORDER BY m.trace, m.group, m.since NULLS LAST, m.member;

-- What caused the rebalances of a group, and which client?
CREATE OR REPLACE TEMPORARY VIEW culprits AS
SELECT r.group, r.cause, c.client, count(*) AS rebalances, CAST(sum(r.ms) AS BIGINT) AS ms,
  min(r.culprit) AS example, min(r.reason) AS reason
FROM rebalances r
LEFT JOIN (
  SELECT m.trace, m.group, m.member, max(m.client) AS client FROM memberships m GROUP BY m.trace, m.group, m.member
) c ON c.trace = r.trace AND c.group = r.group AND c.member = r.culprit
GROUP BY r.group, r.cause, c.client
ORDER BY rebalances DESC, r.group, r.cause, c.client NULLS LAST;

-- When were there storms: how many rebalances an hour, in which group, and by which client?
CREATE OR REPLACE TEMPORARY VIEW storms_by_hour AS
SELECT date_trunc('hour', r.at) AS hour, r.group, c.client, count(*) AS rebalances, CAST(sum(r.ms) AS BIGINT) AS ms,
  max(r.ms) AS longest
FROM rebalances r
LEFT JOIN (
  SELECT m.trace, m.group, m.member, max(m.client) AS client FROM memberships m GROUP BY m.trace, m.group, m.member
) c ON c.trace = r.trace AND c.group = r.group AND c.member = r.culprit
GROUP BY date_trunc('hour', r.at), r.group, c.client
ORDER BY rebalances DESC, hour NULLS LAST, r.group, c.client NULLS LAST;

-- How long had a partition no owner between its first owner and its last?
CREATE OR REPLACE TEMPORARY VIEW unowned AS
SELECT i.trace, i.group, i.partition, count(*) AS periods, min(i.since) AS since, max(i.until) AS until,
  CAST(sum(i.idle) AS BIGINT) AS unowned, max(i.idle) AS longest, count(*) FILTER (WHERE i.idle > 0) AS stretches,
  sum(i.idle) / greatest(1, max(i.until) - min(i.since)) AS share
FROM (
  SELECT p.trace, p.group, p.partition, p.since, p.until,
    CASE WHEN p.ended_before = 'gap' THEN 0 ELSE greatest(0, p.since - coalesce(p.before, p.since)) END AS idle
  FROM (
    SELECT o.trace, o.group, o.partition, o.since, o.until,
      max(o.until) OVER earlier AS before, max_by(o.ended, o.until) OVER earlier AS ended_before
    FROM ownership o
    WINDOW earlier AS (
      PARTITION BY o.trace, o.group, o.partition ORDER BY o.since, o.sequence
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
  ) p
) i
GROUP BY i.trace, i.group, i.partition
ORDER BY unowned DESC, i.trace, i.group, i.partition;

-- When had two members the same partition, and for how long?
CREATE OR REPLACE TEMPORARY VIEW owned_twice AS
SELECT p.at, p.trace, p.group, p.partition, p.generation, p.sequence, p.member, p.other,
  least(p.until, p.before) - p.since AS together
FROM (
  SELECT o.at, o.trace, o.group, o.partition, o.generation, o.sequence, o.member, o.since, o.until,
    max(o.until) OVER earlier AS before, max_by(o.member, o.until) OVER earlier AS other
  FROM ownership o
  WINDOW earlier AS (
    PARTITION BY o.trace, o.group, o.partition ORDER BY o.since, o.sequence
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
) p
WHERE p.other <> p.member AND least(p.until, p.before) > p.since
ORDER BY together DESC, p.trace, p.sequence, p.partition;

-- How far behind is a group now?
CREATE OR REPLACE TEMPORARY VIEW lag AS
SELECT o.at, o.trace, o.group, o.topic, o.partition, o.committed, o.log_end, o.lag
FROM offsets o
WHERE o.is_last
ORDER BY o.lag DESC, o.trace, o.group, o.topic, o.partition;

-- How many records did a group fall behind by a rebalance: in it and the minute after, against the time before?
CREATE OR REPLACE TEMPORARY VIEW rebalance_lag AS
SELECT s.at, s.trace, s.group, s.generation, s.cause, s.culprit, s.ms, CAST(sum(s.before) AS BIGINT) AS before,
  CAST(sum(s.after) AS BIGINT) AS after, CAST(sum(greatest(0, s.after - s.before)) AS BIGINT) AS grown
FROM (
  SELECT r.at, r.trace, r.group, r.generation, r.cause, r.culprit, r.ms, r.time, o.topic, o.partition,
    max_by(o.lag, o.time) FILTER (WHERE o.time <= r.time) AS before,
    max(o.lag) FILTER (WHERE o.time > r.time) AS after
  FROM rebalances r
  JOIN offsets o ON o.trace = r.trace AND o.group = r.group
    AND o.time > r.time - 3600000 AND o.time <= r.time + r.ms + 60000 AND o.lag IS NOT NULL
  GROUP BY r.at, r.trace, r.group, r.generation, r.cause, r.culprit, r.ms, r.time, o.topic, o.partition
) s
WHERE s.before IS NOT NULL AND s.after IS NOT NULL
GROUP BY s.at, s.trace, s.group, s.generation, s.cause, s.culprit, s.ms, s.time
ORDER BY grown DESC, s.trace, s.time;

-- Who was refused as a stranger, as a zombie of an old generation, or in a rebalance, and when?
CREATE OR REPLACE TEMPORARY VIEW fenced AS
SELECT date_trunc('hour', e.at) AS hour, e.group, e.member_id, e.instance, e.api, e.error,
  CASE e.error WHEN 22 THEN 'ILLEGAL_GENERATION' WHEN 25 THEN 'UNKNOWN_MEMBER_ID' WHEN 27 THEN 'REBALANCE_IN_PROGRESS'
    WHEN 82 THEN 'FENCED_INSTANCE_ID' WHEN 110 THEN 'FENCED_MEMBER_EPOCH' ELSE 'UNRELEASED_INSTANCE_ID' END AS meaning,
  count(*) AS times
FROM events e
WHERE e.kind = 'response' AND e.error IN (22, 25, 27, 82, 110, 111)
GROUP BY date_trunc('hour', e.at), e.group, e.member_id, e.instance, e.api, e.error
ORDER BY times DESC, hour NULLS LAST, e.group, e.member_id NULLS LAST, e.api, e.error;

-- Whom do rebalances wait for: who joins or syncs last, or not at all?
CREATE OR REPLACE TEMPORARY VIEW slow_members AS
SELECT r.group, r.awaited, c.client, r.held, count(*) AS rebalances, CAST(sum(r.held_ms) AS BIGINT) AS ms,
  max(r.held_ms) AS longest
FROM rebalances r
LEFT JOIN (
  SELECT m.trace, m.group, m.member, max(m.client) AS client FROM memberships m GROUP BY m.trace, m.group, m.member
) c ON c.trace = r.trace AND c.group = r.group AND c.member = r.awaited
WHERE r.awaited IS NOT NULL
GROUP BY r.group, r.awaited, c.client, r.held
ORDER BY ms DESC, r.group, r.awaited, r.held;

-- Which libraries, in which versions, do the members of a group use?
CREATE OR REPLACE TEMPORARY VIEW client_versions AS
SELECT m.group, m.library, m.version, count(*) AS memberships, count(DISTINCT m.client) AS clients,
  min(m.came) AS first_came, max(m.came) AS last_came
FROM members m
GROUP BY m.group, m.library, m.version
ORDER BY memberships DESC, m.group, m.library NULLS LAST, m.version NULLS LAST;

-- Which groups speak a newer protocol (KIP-848, KIP-932), of which there is no judge?
CREATE OR REPLACE TEMPORARY VIEW newer_groups AS
SELECT e.group, e.api, count(*) AS requests, min(e.at) AS first_seen, max(e.at) AS last_seen
FROM events e
WHERE e.kind = 'request' AND e.api IN ('ConsumerGroupHeartbeat', 'ShareGroupHeartbeat')
GROUP BY e.group, e.api
ORDER BY requests DESC, e.group, e.api;
