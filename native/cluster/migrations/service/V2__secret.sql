-- What only front ends know: with it they mark the values that they keep in the store for each other.

CREATE TABLE service.secrets (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    marks bytea NOT NULL CHECK (octet_length(marks) = 32)
);
-- Two random UUIDs have 244 random bits.
INSERT INTO service.secrets (marks)
    VALUES (sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));
COMMENT ON COLUMN service.secrets.marks IS 'Whoever knows it and can write to the store can change filters. Changing it makes all filters unknown.';
