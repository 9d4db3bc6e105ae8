// Every command and snippet of the documents that users follow, in their order, and how documents.test.mjs runs it. This is the only such list.
//
// `begins`: how the block begins. What follows is one of
// - `script`: it is a module of a foreign project. `replace` names what stands for the reader's own node, account or network.
// - `shell`: its lines are commands, one by one; those that serve run until the next lines are through.
// - `check`: the name of a check of its own.
// - `needs`: it is not run. The text says so to a reader who looks at it, by a public network's name or by a program that he has
//   (`marks`), or it is no command.

const NODE = 'https://node.example/KEY';
const PUBLIC = 'a public network';

/** Words by which a reader sees that a block needs a public network. */
export const PUBLIC_MARKS = /0xADDRESS|mainnet|public-node\.rsk\.co|testnet|watch 86400/;

const ownNode = [["network: 'mainnet'", "network: 'regtest'"], [NODE, 'URL']];

export const DOCUMENTS = {
  'README.md': [
    { begins: '$ cargo run --release -- balance 0xADDRESS', needs: PUBLIC },
    { begins: "import { createProvider } from 'rootlight';", script: 'balance', replace: [...ownNode, ['0xADDRESS', 'ACCOUNT']] },
    { begins: 'cargo run --release ', check: 'cargo' },
    { begins: 'cargo install --locked --path', check: 'cargo' },
    { begins: "import { createProvider } from 'rootlight';\nimport { createPublicClient", script: 'number', replace: [...ownNode, ['await client.getBlockNumber();', 'console.log(await client.getBlockNumber());']] },
    { begins: 'cargo xtask wasm', check: 'install' },
    { begins: 'npx rootlight dev', shell: 'npx', replace: [['npx rootlight dev', 'npx rootlight dev --http-port 0']] },
    { begins: '// hardhat.config.js of Hardhat 2', check: 'hardhat' },
    { begins: '# foundry.toml', check: 'foundry' },
    { begins: 'rootlight dev --fork', needs: 'a node of a live network (native/cli/tests/client/fork.rs)', marks: /node\.example/ },
    {
      begins: 'rootlight light --upstream https://one.example/KEY',
      shell: 'light',
      replace: [['https://one.example/KEY', 'URL'], ['https://two.example', 'SOCKET'], ['--data-dir headers', '--data-dir headers --network regtest --http-port 0'], ['127.0.0.1:4444', 'SERVED']],
    },
    { begins: '$ curl -sSf https://public-node.rsk.co', needs: PUBLIC },
  ],
  'pkg/README.md': [
    { begins: "import { createProvider } from 'rootlight';\nconst provider", script: 'balance', replace: [...ownNode, ['0xADDRESS', 'ACCOUNT']] },
    { begins: "import { createProvider } from 'rootlight';\nimport { createPublicClient", script: 'number', replace: ownNode },
    { begins: "import { announce, createProvider } from 'rootlight';", script: 'wallet', replace: [["network: 'mainnet'", "network: 'regtest'"]] },
    { begins: "import { createDevChain } from 'rootlight/dev.js';", script: 'dev', replace: [] },
    { begins: 'npx rootlight dev', shell: 'npx', replace: [['--http-port 8545', '--http-port 0']] },
    { begins: "import * as verify from 'rootlight/verify.js';", script: 'verify', replace: [['verify.header(block)', "verify.header(block, { network: 'regtest' })"], ['header: block }', "header: block }, { network: 'regtest' }"]] },
    { begins: '// vite.config.js', check: 'vite' },
  ],
  'docs/tour.md': [
    { begins: 'cargo xtask build', check: 'cargo' },
    { begins: 'rootlight ', shell: 'npx', replace: [['rootlight  ', 'rootlight --http-port 0 ']] },
    { begins: 'npm install --install-links', check: 'install' },
    { begins: '// wallet.mjs', script: 'liar', replace: [['http://127.0.0.1:4444', 'URL']] },
    { begins: '// counter.mjs', script: 'counter', replace: [['http://127.0.0.1:4444', 'URL']] },
    {
      begins: 'rootlight light --network regtest',
      shell: 'operator',
      replace: [['http://127.0.0.1:4444', 'URL'], ['--http-port 4454', '--http-port 0'], ['127.0.0.1:4454', 'SERVED']],
    },
    { begins: 'sed -n 5p tests/vectors', shell: 'repository', replace: [] },
  ],
  'docs/dev.md': [
    { begins: 'rootlight ', shell: 'dev', replace: [['rootlight  ', 'rootlight --http-port 0 ']] },
    { begins: 'rootlight dev --fork', needs: PUBLIC },
    { begins: '// hardhat.config.js of Hardhat 3', check: 'hardhat3' },
    { begins: "import { createDevChain } from 'rootlight/dev.js';", script: 'dev', replace: [] },
  ],
  'docs/light.md': [
    { begins: 'rootlight light --upstream', shell: 'serves', replace: [['https://one.example/KEY', 'URL'], ['wss://two.example', 'SOCKET'], ['--data-dir headers', '--data-dir more --network regtest --http-port 0']] },
    { begins: 'rootlight light --network regtest', shell: 'serves', replace: [['http://127.0.0.1:4444', 'URL'], ['--http-port 4454', '--http-port 0']] },
  ],
  'docs/first-run.md': [
    { begins: 'rootlight balance 0xADDRESS', needs: PUBLIC },
    { begins: 'rootlight doctor --watch 86400', needs: PUBLIC },
  ],
  'docs/server.md': [
    { begins: '# rootlight.toml, for `rootlight light', check: 'config' },
    {
      begins: 'rootlight keys create --api-keys keys.redb',
      shell: 'keys',
      replace: [[`--upstream ${NODE}`, '--upstream URL --network regtest --http-port 0'], [' [--json]', ' --json'], ['limit  ID', 'limit KEYID'], ['revoke ID', 'revoke KEYID']],
    },
  ],
  'docs/runbook.md': [
    { begins: 'rootlight sidecar --rskj-db', needs: 'the files of an rskj', marks: /rskj-db/ },
    { begins: 'pg_dump --schema=service', needs: 'a PostgreSQL server with a service', marks: /pg_dump/ },
    { begins: 'rootlight keys revoke ID STORE DATABASE', needs: 'a service (native/cli/tests/cluster/keys.rs)', marks: /STORE DATABASE/ },
  ],
  'docs/cluster.md': [
    { begins: 'rootlight serve --backend', needs: 'a service (native/cli/tests/cluster/serve.rs)', marks: /redis:.*postgres:/s },
    { begins: 'rootlight keys create --cluster', needs: 'a service (native/cli/tests/cluster/keys.rs)', marks: /redis:.*postgres:/s },
    { begins: 'rootlight index --from', needs: 'a PostgreSQL server (native/cli/tests/program/index.rs)', marks: /postgres:/ },
    { begins: '-- Which blocks are there?', needs: 'a PostgreSQL server with an index', marks: /FROM rootlight\./ },
    { begins: 'rootlight serve ...', needs: 'a service (native/cli/tests/cluster/admin_program.rs)', marks: /serve \.\.\./ },
    { begins: 'ROOTLIGHT_SERVICE_SECONDS', needs: 'an hour and a service; `cargo xtask test --full` runs it for a minute', marks: /SECONDS=3600/ },
  ],
  'docs/verify.md': [
    { begins: 'rootlight verify header|block', needs: 'no command: the form of one', marks: /\|/ },
    { begins: '{ "receipt"', needs: 'no command: the form of a file', marks: /<hex>/ },
    { begins: 'call() {', shell: 'receipt', replace: [['verify receipt -', 'verify receipt - --network regtest']] },
    { begins: '{ "proof"', needs: 'no command: the form of a file', marks: /</ },
    { begins: 'sed -n 5p tests/vectors', shell: 'repository', replace: [] },
    { begins: '{ "subject"', needs: 'no command: the form of an answer', marks: /verified/ },
  ],
};
