// The commands and snippets of a document: fenced blocks and indented ones.

/**
 * @param {string} text
 * @returns {{kind: string, line: number, text: string}[]} `kind`: the language of a fence, or `indented`
 */
export function blocks(text) {
  const lines = text.split('\n');
  const found = [];
  const isIndented = (line) => /^ {4}\S/.test(line ?? '');
  for (let at = 0; at < lines.length; at += 1) {
    const from = at;
    const [fence, kind] = /^```(\w*)$/.exec(lines[at]) ?? [];
    if (fence !== undefined) {
      while (lines[(at += 1)] !== '```') if (at > lines.length) throw new Error(`line ${from + 1}: the block has no end`);
      found.push({ kind, line: from + 1, text: lines.slice(from + 1, at).join('\n') });
    } else if (isIndented(lines[at]) && /^(?:#.*)?$/.test(lines[at - 1] ?? '')) {
      while (/^ {4}/.test(lines[at + 1] ?? '')) at += 1;
      found.push({ kind: 'indented', line: from + 1, text: lines.slice(from, at + 1).map((line) => line.slice(4)).join('\n') });
    }
  }
  return found;
}

/**
 * The commands of a document that install the package, in blocks and in sentences. `published` are those that name it in npm's
 * registry, `folder` those that name a folder.
 * @param {string} text
 */
export function installs(text) {
  const found = [...text.matchAll(/npm install [^`\n]*/g)].map(([command]) => command.split('  ')[0].trim());
  return { published: found.filter((command) => / rootlight( |$)/.test(command)), folder: found.filter((command) => /\/pkg( |$)/.test(command)) };
}
