//! Scripts in Lua that the hot store runs, each as one step: no other command runs in between.

/// Code before each script; [`TAIL`] follows it.
const HEAD: &str = "local function run()\n";
/// Code after each script. If the key has another kind of value than the script works on, the key was damaged, or written by another
/// program: it is removed, and the script runs again. The script fails before it has written anything, because all that it
/// writes is of one kind.
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

/// A script in Lua that works on one key, `KEYS[1]`. Servers store scripts by their hash, so the text is sent only to a server that
/// does not have it. If the key has another kind of value than the script works on, the key is removed first.
#[derive(Debug, Clone)]
pub struct Script {
    pub(super) text: String,
    /// SHA-1 of the text, in hexadecimal, by which servers store scripts.
    pub(super) hash: String,
}

impl Script {
    /// `text` must use no other key than `KEYS[1]`: in a cluster another key may be on another server.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = [HEAD, text, TAIL].concat();
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }
}
