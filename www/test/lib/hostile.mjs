// Texts that anybody can write into a chain, an ABI or a field.

export const NAMES = [
  '<img src=x onerror=alert(1)>',
  '</dd><script>alert(1)</script>',
  '"><svg onload=alert(1)>',
  'javascript:alert(1)',
  '<iframe srcdoc="<script>parent.alert(1)</script>">',
  '\u202egnp.exe \u2066\u0007',
  'A'.repeat(5000),
];

/** As the page writes characters that are not seen. */
export const safe = (text) => text.replaceAll(/[\p{Cc}\p{Cf}]/gu, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);
