// The site of an origin: the part of its name that somebody has registered (`example.co.uk`), or the whole name of hosts without one.
// Whoever has a site has any number of subdomains, and so of origins.

/** @param {(url: string) => string | null} getDomain that of the library `tldts`, which knows the public suffixes */
export const sitesBy = (getDomain) => (origin) => getDomain(origin) ?? new URL(origin).hostname;
