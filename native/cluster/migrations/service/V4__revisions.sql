-- Revisions follow the time, so that a replica that became the primary does not use one twice.

COMMENT ON COLUMN service.state.revision IS 'Rises with each change of a key, to the time in milliseconds since 1970 at least; changes follow each other, because each locks this row.';
