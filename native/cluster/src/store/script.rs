//! Scripts that the store runs.

/// Code around each script. A key that holds another kind of value than the script works on was damaged, or written by
/// another program: it is removed, and the script begins anew. A script meets that before it has written anything, since all
/// that it writes is of one kind.
const HEAD: &str = "local function run()\n";
const TAIL: &str = "\nend
local done, answer = pcall(run)
if done then
  return answer
end
local text = type(answer) == 'table' and answer.err or tostring(answer)
if string.find(text, '^%-?WRONGTYPE') then
  redis.call('DEL', KEYS[1])
  return run()
end
return redis.error_reply(text)";

/// A script in Lua that works on one key, `KEYS[1]`. It is sent whole only to a server that does not know it. Should the key
/// hold another kind of value than the script works on, the script finds none.
#[derive(Debug, Clone)]
pub struct Script {
    pub(super) text: String,
    pub(super) hash: String,
}

impl Script {
    /// A script. It must name no other key than `KEYS[1]`, because a cluster keeps keys on different servers.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = [HEAD, text, TAIL].concat();
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }
}
