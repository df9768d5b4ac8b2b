PRAGMA application_id = 1936682596;
PRAGMA user_version = 5;
CREATE TABLE cell (
    run        TEXT    NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    place      INTEGER NOT NULL,
    id         TEXT    NOT NULL,
    probe      TEXT    NOT NULL,
    mode       TEXT,
    layer      TEXT    NOT NULL,
    path       TEXT    NOT NULL,
    method     TEXT,
    wait       TEXT,
    network    TEXT    NOT NULL,
    testbed    TEXT    NOT NULL,
    hosts      TEXT    NOT NULL,
    profile    TEXT,
    attachment TEXT,
    load       TEXT,
    size_bytes INTEGER NOT NULL,
    launches   INTEGER NOT NULL,
    skipped    TEXT,
    knobs      TEXT    NOT NULL DEFAULT '{}',
    PRIMARY KEY (run, id)
) STRICT;
CREATE TABLE disturbance (
    launch       INTEGER NOT NULL REFERENCES launch (id) ON DELETE CASCADE,
    place        INTEGER NOT NULL,
    source       TEXT    NOT NULL,
    host         TEXT    NOT NULL,
    interface    TEXT,
    from_unix_ns INTEGER NOT NULL,
    to_unix_ns   INTEGER NOT NULL,
    most_ns      INTEGER NOT NULL,
    events       INTEGER NOT NULL,
    PRIMARY KEY (launch, place)
) STRICT;
CREATE TABLE event (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    run        TEXT    NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    at_unix_ns INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    text       TEXT    NOT NULL
) STRICT;
CREATE INDEX event_of_run ON event (run);
CREATE TABLE host (
    run             TEXT    NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    place           INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    address         TEXT    NOT NULL,
    facts           TEXT    NOT NULL,
    clock_offset_ns INTEGER,
    clock_drift_ppb INTEGER,
    clock_bound_ns  INTEGER,
    PRIMARY KEY (run, name)
) STRICT;
CREATE TABLE launch (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    run           TEXT    NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    src           TEXT    NOT NULL,
    dst           TEXT    NOT NULL,
    began_unix_ns INTEGER NOT NULL,
    took_ns       INTEGER NOT NULL,
    evidence      TEXT    NOT NULL,
    interference  TEXT    NOT NULL,
    verdict       TEXT,
    set_aside     TEXT
) STRICT;
CREATE INDEX launch_of_run ON launch (run);
CREATE TABLE network (
    run          TEXT    NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    place        INTEGER NOT NULL,
    name         TEXT    NOT NULL,
    description  TEXT    NOT NULL,
    ceilings     TEXT    NOT NULL,
    attachment   TEXT,
    backpressure TEXT,
    spec         TEXT,
    PRIMARY KEY (run, name)
) STRICT;
CREATE TABLE result (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    launch  INTEGER NOT NULL REFERENCES launch (id) ON DELETE CASCADE,
    run     TEXT    NOT NULL,
    cell    TEXT    NOT NULL,
    number  INTEGER NOT NULL,
    failure TEXT,
    UNIQUE (run, cell, number),
    FOREIGN KEY (run, cell) REFERENCES cell (run, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX result_of_launch ON result (launch);
CREATE TABLE run (
    id            TEXT    PRIMARY KEY,
    command       TEXT    NOT NULL,
    plan          TEXT    NOT NULL,
    seed          ANY     NOT NULL,
    version       TEXT    NOT NULL,
    began_unix_ns INTEGER NOT NULL,
    ended_unix_ns INTEGER,
    state         TEXT    NOT NULL
) STRICT;
CREATE TABLE series (
    result   INTEGER NOT NULL REFERENCES result (id) ON DELETE CASCADE,
    place    INTEGER NOT NULL,
    quantity TEXT    NOT NULL,
    phase    TEXT    NOT NULL,
    step     TEXT,
    reason   TEXT,
    count    INTEGER NOT NULL,
    min      ANY,
    max      ANY,
    sum      ANY     NOT NULL,
    first    BLOB    NOT NULL,
    buckets  BLOB    NOT NULL,
    touched  TEXT,
    PRIMARY KEY (result, place)
) STRICT;
CREATE TABLE sqlite_sequence(name,seq);
CREATE TABLE warning (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    run  TEXT NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX warning_of_run ON warning (run);
