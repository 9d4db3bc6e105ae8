-- Traces of calls, which no header commits to, and the uncles of blocks.

ALTER TABLE rootlight.blocks ADD COLUMN uncles bytea;
COMMENT ON COLUMN rootlight.blocks.uncles IS
    'RLP list of the headers of the uncles, which match the uncles hash in the header. NULL: they are not stored.';

ALTER TABLE rootlight.ranges ADD COLUMN traces_next bigint;
UPDATE rootlight.ranges SET traces_next = first_block;
ALTER TABLE rootlight.ranges
    ALTER COLUMN traces_next SET NOT NULL,
    ADD CHECK (traces_next BETWEEN first_block AND next_block);
COMMENT ON COLUMN rootlight.ranges.traces_next IS
    'Blocks from first_block to the one before this one have their traces, except those in rootlight.untraced.';

CREATE TABLE rootlight.traces (
    block_number bigint NOT NULL,
    transaction_index integer NOT NULL,
    trace_index integer NOT NULL,
    trace_address integer[] NOT NULL,
    subtraces integer NOT NULL,
    kind text NOT NULL,
    sender bytea NOT NULL,
    recipient bytea,
    value numeric NOT NULL,
    gas bigint,
    gas_used bigint,
    error text,
    input bytea NOT NULL,
    output bytea,
    PRIMARY KEY (block_number, transaction_index, trace_index)
) PARTITION BY RANGE (block_number);
COMMENT ON TABLE rootlight.traces IS
    'Calls, creations and self-destructions as the source says; no header commits to them, so nothing proves them.';
COMMENT ON COLUMN rootlight.traces.trace_index IS 'Index among the traces of the transaction.';
COMMENT ON COLUMN rootlight.traces.trace_address IS 'Path from the transaction''s own call, which has an empty one.';
COMMENT ON COLUMN rootlight.traces.subtraces IS 'Number of traces directly below.';
COMMENT ON COLUMN rootlight.traces.kind IS
    'call, callcode, delegatecall, staticcall, create, create2 or suicide.';
COMMENT ON COLUMN rootlight.traces.sender IS 'The caller or creator; the contract that destructs itself.';
COMMENT ON COLUMN rootlight.traces.recipient IS
    'The account that is called; the contract that was created, NULL if the creation failed; who gets the balance of a contract that destructs itself.';
COMMENT ON COLUMN rootlight.traces.value IS 'In wei; of a self-destruction the balance.';
COMMENT ON COLUMN rootlight.traces.gas_used IS 'NULL: the call failed, or is a self-destruction.';
COMMENT ON COLUMN rootlight.traces.error IS 'Why the call failed, in the words of the source; NULL if it did not.';
COMMENT ON COLUMN rootlight.traces.input IS 'The data of a call, or the initialisation code of a creation.';
COMMENT ON COLUMN rootlight.traces.output IS 'What the call returned, or the code of the created contract.';

CREATE TABLE rootlight.untraced (
    block_number bigint NOT NULL PRIMARY KEY
);
COMMENT ON TABLE rootlight.untraced IS 'Blocks whose traces are too long to be stored.';

-- Partitions for the blocks that are there already.
DO $$
DECLARE
    part record;
    name text;
BEGIN
    FOR part IN SELECT first_block, end_block, searchable FROM rootlight.ranges LOOP
        name := format('traces_%s', lpad(part.first_block::text, 12, '0'));
        EXECUTE format(
            'CREATE TABLE rootlight.%1$I (LIKE rootlight.traces INCLUDING ALL, CHECK (block_number >= %2$s AND block_number < %3$s))',
            name, part.first_block, part.end_block);
        EXECUTE format(
            'ALTER TABLE rootlight.traces ATTACH PARTITION rootlight.%1$I FOR VALUES FROM (%2$s) TO (%3$s)',
            name, part.first_block, part.end_block);
        IF part.searchable THEN
            EXECUTE format('CREATE INDEX %1$I ON rootlight.%2$I (sender, block_number)', name || '_sender', name);
            EXECUTE format(
                'CREATE INDEX %1$I ON rootlight.%2$I (recipient, block_number) WHERE recipient IS NOT NULL',
                name || '_recipient', name);
        END IF;
    END LOOP;
END $$;
