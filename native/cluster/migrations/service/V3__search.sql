-- For the admin page: keys are found by the beginning of their names and ids, and usage is added up for all keys.

-- Bytes are compared, whatever the language of the database, so that a beginning is a range.
CREATE INDEX keys_name_search ON service.keys ((lower(name) COLLATE "C"), number);
CREATE INDEX keys_id_search ON service.keys ((id COLLATE "C"));

CREATE TABLE service.usage_totals (
    day integer PRIMARY KEY,
    requests bigint NOT NULL DEFAULT 0,
    weight bigint NOT NULL DEFAULT 0,
    refused bigint NOT NULL DEFAULT 0
);
INSERT INTO service.usage_totals (day, requests, weight, refused)
    SELECT day, sum(requests), sum(weight), sum(refused) FROM service.usage_days GROUP BY day;
COMMENT ON TABLE service.usage_totals IS 'service.usage_days of all keys together, so that nobody has to add up a million rows.';

CREATE TABLE service.usage_class_totals (
    class text PRIMARY KEY,
    requests bigint NOT NULL DEFAULT 0
);
INSERT INTO service.usage_class_totals (class, requests)
    SELECT class, sum(requests) FROM service.usage_classes GROUP BY class;
COMMENT ON TABLE service.usage_class_totals IS 'service.usage_classes of all keys together.';
