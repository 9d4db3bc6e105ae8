-- API keys of a service on many machines, and what they were used for.

CREATE TABLE service.state (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    revision bigint NOT NULL DEFAULT 0
);
INSERT INTO service.state DEFAULT VALUES;
COMMENT ON TABLE service.state IS 'One row.';
COMMENT ON COLUMN service.state.revision IS 'Rises by one with each change of a key; changes follow each other, because each locks this row.';

CREATE TABLE service.keys (
    id text PRIMARY KEY CHECK (id ~ '^[a-z2-7]{8}$'),
    number integer NOT NULL GENERATED ALWAYS AS IDENTITY UNIQUE,
    name text NOT NULL,
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    created bigint NOT NULL,
    revoked bigint,
    rules jsonb NOT NULL,
    revision bigint NOT NULL DEFAULT 0
);
CREATE INDEX keys_revision ON service.keys (revision) WHERE revision > 0;
COMMENT ON TABLE service.keys IS 'The keys. No row is ever removed, so that numbers are not used twice.';
COMMENT ON COLUMN service.keys.number IS 'Owner of filters and usage; the same on all front ends.';
COMMENT ON COLUMN service.keys.hash IS 'SHA-256 of the secret.';
COMMENT ON COLUMN service.keys.created IS 'Seconds since 1970.';
COMMENT ON COLUMN service.keys.revoked IS 'Seconds since 1970; NULL if the key is valid.';
COMMENT ON COLUMN service.keys.revision IS 'service.state.revision of the last change; 0 if there was none.';

CREATE TABLE service.usage (
    number integer PRIMARY KEY,
    requests bigint NOT NULL DEFAULT 0,
    weight bigint NOT NULL DEFAULT 0,
    refused bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE service.usage IS 'What keys were used for. Number 0 has what could not be attributed, because too many keys were used while the database was away.';

CREATE TABLE service.usage_days (
    day integer NOT NULL,
    number integer NOT NULL,
    requests bigint NOT NULL DEFAULT 0,
    weight bigint NOT NULL DEFAULT 0,
    refused bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (number, day)
);
CREATE INDEX usage_days_day ON service.usage_days (day);
COMMENT ON TABLE service.usage_days IS 'The same by day (UTC, days since 1970). Old days may be deleted.';

CREATE TABLE service.usage_classes (
    number integer NOT NULL,
    class text NOT NULL,
    requests bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (number, class)
);
COMMENT ON TABLE service.usage_classes IS 'Requests by namespace of their methods.';

CREATE TABLE service.flushes (
    front_end text PRIMARY KEY,
    flush bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE service.flushes IS 'The last flush of usage of each front end, so that one that is sent twice counts once.';
