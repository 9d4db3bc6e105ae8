-- Blocks, transactions, receipts and logs of one Rootstock network.
--
-- Every table is partitioned by block number, and the block number is part of every primary key, so that a database that
-- distributes tables (Citus, YugabyteDB) can distribute them by it: no constraint needs to look at other partitions.
-- The loader makes partitions. Beside the primary key a partition has secondary indexes only once its first blocks are
-- complete; rootlight.ranges says which blocks are there and can be searched.

CREATE TABLE rootlight.state (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    network text NOT NULL,
    chain_id bigint NOT NULL,
    genesis_hash bytea NOT NULL CHECK (octet_length(genesis_hash) = 32),
    partition_blocks bigint NOT NULL CHECK (partition_blocks > 0),
    floor_block bigint NOT NULL CHECK (floor_block >= 0),
    epoch bigint NOT NULL DEFAULT 0,
    writer text NOT NULL DEFAULT ''
);
COMMENT ON TABLE rootlight.state IS 'One row: the network, and who writes.';
COMMENT ON COLUMN rootlight.state.partition_blocks IS 'Number of blocks of a partition.';
COMMENT ON COLUMN rootlight.state.floor_block IS 'The index has no block below this one.';
COMMENT ON COLUMN rootlight.state.epoch IS 'Rises with each indexer that starts; one with an older number cannot write.';
COMMENT ON COLUMN rootlight.state.writer IS 'Host, process and start time of the newest indexer.';

CREATE TABLE rootlight.ranges (
    first_block bigint PRIMARY KEY,
    end_block bigint NOT NULL CHECK (end_block > first_block),
    next_block bigint NOT NULL CHECK (next_block BETWEEN first_block AND end_block),
    searchable boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE rootlight.ranges IS 'What is loaded: one row for each partition.';
COMMENT ON COLUMN rootlight.ranges.end_block IS 'The first block after the partition.';
COMMENT ON COLUMN rootlight.ranges.next_block IS 'Blocks from first_block to the one before this one are loaded.';
COMMENT ON COLUMN rootlight.ranges.searchable IS 'Whether the partition has its secondary indexes.';

CREATE TABLE rootlight.blocks (
    number bigint NOT NULL PRIMARY KEY,
    hash bytea NOT NULL,
    parent_hash bytea NOT NULL,
    "timestamp" bigint NOT NULL,
    miner bytea,
    gas_limit numeric NOT NULL,
    gas_used bigint NOT NULL,
    minimum_gas_price numeric NOT NULL,
    difficulty numeric NOT NULL,
    transaction_count integer NOT NULL,
    log_count integer NOT NULL,
    proof smallint NOT NULL CHECK (proof IN (0, 1)),
    header bytea NOT NULL
) PARTITION BY RANGE (number);
COMMENT ON COLUMN rootlight.blocks."timestamp" IS 'Seconds since 1970.';
COMMENT ON COLUMN rootlight.blocks.proof IS
    '1: the header is on the heaviest proven chain, or an ancestor of it by hashes. 0: only the source says that the block is on the chain. In both cases transactions and receipts match the roots in the header.';
COMMENT ON COLUMN rootlight.blocks.header IS 'RLP of the header with all mining fields that the source gave.';

CREATE TABLE rootlight.transactions (
    block_number bigint NOT NULL,
    transaction_index integer NOT NULL,
    hash bytea NOT NULL,
    sender bytea NOT NULL,
    recipient bytea,
    created_contract bytea,
    value numeric NOT NULL,
    nonce numeric NOT NULL,
    gas_limit numeric NOT NULL,
    gas_price numeric NOT NULL,
    input bytea NOT NULL,
    v smallint NOT NULL,
    r bytea NOT NULL,
    s bytea NOT NULL,
    nonce_bytes integer NOT NULL,
    gas_limit_bytes integer NOT NULL,
    gas_price_bytes integer NOT NULL,
    PRIMARY KEY (block_number, transaction_index)
) PARTITION BY RANGE (block_number);
COMMENT ON COLUMN rootlight.transactions.recipient IS 'NULL: the transaction creates a contract.';
COMMENT ON COLUMN rootlight.transactions.created_contract IS 'The contract that the transaction creates, if it succeeds.';
COMMENT ON COLUMN rootlight.transactions.value IS 'In wei.';
COMMENT ON COLUMN rootlight.transactions.gas_price IS 'In wei.';
COMMENT ON COLUMN rootlight.transactions.nonce_bytes IS
    'Length of the number as it is hashed, leading zeros included; so for gas limit and gas price.';

CREATE TABLE rootlight.receipts (
    block_number bigint NOT NULL,
    transaction_index integer NOT NULL,
    transaction_hash bytea NOT NULL,
    success boolean NOT NULL,
    gas_used bigint NOT NULL,
    cumulative_gas_used bigint NOT NULL,
    first_log_index integer NOT NULL,
    log_count integer NOT NULL,
    PRIMARY KEY (block_number, transaction_index)
) PARTITION BY RANGE (block_number);
COMMENT ON COLUMN rootlight.receipts.first_log_index IS 'Index in the block of the first log, if there is one.';

CREATE TABLE rootlight.logs (
    block_number bigint NOT NULL,
    log_index integer NOT NULL,
    transaction_index integer NOT NULL,
    transaction_hash bytea NOT NULL,
    address bytea NOT NULL,
    topic0 bytea,
    topic1 bytea,
    topic2 bytea,
    topic3 bytea,
    data bytea NOT NULL,
    PRIMARY KEY (block_number, log_index)
) PARTITION BY RANGE (block_number);
COMMENT ON COLUMN rootlight.logs.log_index IS 'Index among all logs of the block.';
COMMENT ON COLUMN rootlight.logs.topic0 IS 'Usually the hash of the event''s signature. NULL: the log has no such topic.';
