-- The store's tables, schema 1.4. `PRAGMA user_version` holds major * 1000 + minor: a newer minor adds
-- only what an older program may ignore; a newer major is refused.
-- Times: *_ms are Unix milliseconds and only shown; tick_ms is the file's own time line, by which
-- sessions are judged: CLOCK_BOOTTIME plus the offset of its boot, never decreasing with seq.

-- first_seq: events below it were dropped by retention. next_seq, last_tick_ms: floors for what is
-- given out next, written when the newest events may have been deleted. erasing: how far an erasure
-- came (1: the rows are deleted, 2: the file is rewritten, 0: done). leap_tick_ms: when a boot began
-- whose clock was more than an hour ahead of the newest event; retention by age waits an hour then.
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE boots (
  boot_id TEXT PRIMARY KEY,
  offset_ms INTEGER NOT NULL          -- tick_ms = milliseconds since that boot + offset_ms
) WITHOUT ROWID;

CREATE TABLE sessions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, -- events.session; rises with creation, never reused
  name TEXT NOT NULL UNIQUE,          -- the session id that agents use
  parent TEXT,                        -- session id; may name a session not seen yet
  agent TEXT,
  spec TEXT NOT NULL,                 -- how it was created, JSON; the first policy is in it
  created_ms INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  lifecycle TEXT NOT NULL,            -- an end is written with the end event, the rest by the judge
  outcome_reason TEXT,
  ended_ms INTEGER,                   -- null while it runs
  cancel TEXT,                        -- JSON {by, reason, at}: the directive that replies carry
  health TEXT NOT NULL,               -- written with the newest transition
  updated_ms INTEGER NOT NULL,        -- newest change of lifecycle or health
  turns INTEGER,                      -- since 1.2: 1: a turn has begun since it last started
  aborts TEXT                         -- since 1.2: JSON [{turnId, toolId?, by, reason, at}]: what is to stop, until it has
);
CREATE INDEX sessions_by_health ON sessions (health, id);
CREATE INDEX sessions_by_lifecycle ON sessions (lifecycle, id);
CREATE INDEX sessions_by_agent ON sessions (agent, id) WHERE agent IS NOT NULL;
CREATE INDEX sessions_by_parent ON sessions (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX sessions_by_end ON sessions (ended_ms) WHERE ended_ms IS NOT NULL;

CREATE TABLE labels (
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  session INTEGER NOT NULL,
  PRIMARY KEY (key, value, session)
) WITHOUT ROWID;

CREATE TABLE heads (
  session INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,               -- its newest event; events.prev leads to the others
  events INTEGER NOT NULL             -- rows ever appended; every 128th gets a row in blocks
);

-- One row an event. Session 0 is the observer itself. No index on (session, seq): it would make each
-- commit touch a page a session; prev and blocks page as well for a tenth of the bytes.
CREATE TABLE events (
  seq INTEGER PRIMARY KEY,            -- given by the writer, never reused
  session INTEGER NOT NULL,
  prev INTEGER NOT NULL,              -- 0, or below meta.first_seq: there is none before it
  tick_ms INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  kind INTEGER NOT NULL,              -- position in the enum ReportKind; its order never changes
  late INTEGER NOT NULL,              -- 1: arrived after the end of its attempt
  name TEXT,                          -- tool, role, type, phase, or what is waited for
  content TEXT,                       -- what the session's content level keeps
  digest INTEGER,                     -- XXH3 of the content before anything was cut
  bytes INTEGER,                      -- its size then
  event_id TEXT,
  facts TEXT,                         -- JSON: what has no column
  marks BLOB,                         -- since 1.1: what its content is recognised by, see marks.cpp
  origin INTEGER                      -- since 1.4: position in the enum ReportOrigin, which never changes; null: unknown
);
CREATE UNIQUE INDEX events_once ON events (event_id, session) WHERE event_id IS NOT NULL;

CREATE TABLE blocks (
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,               -- every 128th event of the session
  PRIMARY KEY (session, seq)
) WITHOUT ROWID;

CREATE TABLE transitions (
  id INTEGER PRIMARY KEY,             -- rises in the order in which they were concluded
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,               -- the newest event of the session then
  tick_ms INTEGER NOT NULL,           -- that event's, or the moment the health before it expired
  at_ms INTEGER NOT NULL,
  from_health TEXT NOT NULL,
  health TEXT NOT NULL,
  pattern TEXT NOT NULL,
  reason TEXT NOT NULL,
  evidence TEXT NOT NULL,             -- JSON array of seq
  detector TEXT NOT NULL,             -- version of the rules
  policy_digest INTEGER NOT NULL,     -- of the thresholds in force
  situation TEXT                      -- since 1.1: JSON, what was known of it then; see api
);
CREATE INDEX transitions_of ON transitions (session, id);

CREATE TABLE snapshots (
  session INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,               -- newest event folded into it
  format INTEGER NOT NULL,            -- of the text; another one is ignored and events are folded
  text TEXT NOT NULL                  -- JSON: history, policy in force, health
);

-- Since 1.3, all that follows: what people are told, and who acted.

-- What the rule of alerts remembers of a session that is no more calm; see alert_rule.h.
CREATE TABLE alert_states (
  session INTEGER PRIMARY KEY,        -- 0: of none; due_tick is when alerts that wait for others go
  due_tick INTEGER,                   -- there will be something to tell then; null: not by itself
  trouble TEXT,
  word TEXT,
  reason TEXT,
  since_tick INTEGER,
  at_ms INTEGER,
  blocked_tick INTEGER,
  episode_tick INTEGER,               -- null: nothing is told
  told TEXT,
  acknowledged INTEGER,
  snoozed_tick INTEGER,
  changes TEXT,                       -- JSON array of ticks
  flapping INTEGER
);
CREATE INDEX alert_states_by_due ON alert_states (due_tick) WHERE due_tick IS NOT NULL;

CREATE TABLE alerts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL,
  kind TEXT NOT NULL,                 -- alert or recovery
  word TEXT NOT NULL,                 -- how the session is: a health or a lifecycle
  reason TEXT NOT NULL,
  detail TEXT,                        -- the error it ended with, as its event keeps it
  at_ms INTEGER NOT NULL,             -- since when it is so
  episode_tick INTEGER NOT NULL,      -- the same for all that is told of one trouble
  message TEXT,                       -- those with the same one go out together; null: it waits for others
  told_tick INTEGER,                  -- when it became part of a message
  parent TEXT,                        -- of the sessions of the whole message, if it is the same
  acknowledged_by TEXT,
  acknowledged_ms INTEGER,
  snoozed_until_ms INTEGER
);
CREATE INDEX alerts_by_session ON alerts (session, id);
CREATE INDEX alerts_by_told ON alerts (told_tick, message);
CREATE INDEX alerts_by_message ON alerts (message) WHERE message IS NOT NULL;

CREATE TABLE deliveries (
  channel TEXT NOT NULL,
  alert INTEGER NOT NULL,
  state TEXT NOT NULL,                -- pending, sent, dead (given up), held (somebody knew before)
  attempts INTEGER NOT NULL,
  error TEXT,                         -- of the newest attempt
  sent_ms INTEGER,
  PRIMARY KEY (channel, alert)
) WITHOUT ROWID;
CREATE INDEX deliveries_pending ON deliveries (channel, alert) WHERE state = 'pending';
CREATE INDEX deliveries_by_alert ON deliveries (alert);

-- What people, and programs with a token, did through a monitor.
CREATE TABLE audit (
  id INTEGER PRIMARY KEY,             -- rises
  at_ms INTEGER NOT NULL,
  actor TEXT NOT NULL,                -- name of the token; local: none was needed
  peer TEXT NOT NULL,                 -- address it came from; empty: no socket
  action TEXT NOT NULL,               -- see audit.h
  target TEXT NOT NULL,               -- id of the session, turn or alert; empty: none
  outcome TEXT NOT NULL               -- ok, or the error's code
);
