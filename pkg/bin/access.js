// Access control of the program's server: the check of the Host header against DNS rebinding, and which methods web pages may call. The rules are those of the native
// server (native/server/src/access.rs); pkg/test/bin-access.test.mjs has its cases.
import { BlockList, isIP, isIPv4 } from 'node:net';
import { Usage } from './flags.js';

/** The longest origin, in characters, that an error repeats. */
const SHOWN_ORIGIN = 300;

/** The addresses of this machine alone. */
const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');
loopback.addSubnet('::ffff:127.0.0.0', 104, 'ipv6');

/** The entries of a comma-separated list in lower case. */
const entriesOf = (text = '') => text.split(',').map((name) => name.trim().toLowerCase()).filter((name) => name !== '');

/** Refuses a list of origins (`--cors`) with an entry in a form that browsers never send, because it would admit no page. */
export function checkOrigins(list) {
  const at = entriesOf(list).findIndex((name) => !['*', 'null'].includes(name) && !/^[^:/?#@]+:\/\/[^/?#@]+$/.test(name));
  if (at >= 0) throw new Usage(`--cors: entry ${at + 1} is no origin as browsers send it, SCHEME://HOST or SCHEME://HOST:PORT without a path, nor * or null`);
}

/** The host part of `name:port` or `[v6]:port`; the port may be missing. */
function withoutPort(host) {
  if (host.startsWith('[')) return host.slice(1).split(']')[0];
  const [, name] = /^([^:]*):\d*$/.exec(host) ?? [];
  return name ?? host;
}

/** Whether a name is `localhost` or below it. These names resolve to this machine, whatever DNS servers of others say. */
const isLocalhost = (name) => /(?:^|\.)localhost$/i.test(name);

/** Whether a host is an IP address of this machine alone. */
const isLoopback = (name) => isIP(name) !== 0 && loopback.check(name, isIPv4(name) ? 'ipv4' : 'ipv6');

/** Whether other machines can reach a server that listens at this host. */
export const isExposed = (host) => !isLocalhost(host) && !isLoopback(host);

/** Whether a page comes from this machine, over HTTP or HTTPS, on any port. */
function isOfThisMachine(origin) {
  const [, host] = /^https?:\/\/(.*)$/is.exec(origin) ?? [];
  return host !== undefined && (isLocalhost(withoutPort(host)) || isLoopback(withoutPort(host)));
}

/** The origin as an answer may repeat it. Long ones, and those with characters that no origin has, are shown as `ORIGIN`. */
const shown = (origin) => (origin.length <= SHOWN_ORIGIN && /^[\w+\-.:/[\]]+$/.test(origin) ? origin : 'ORIGIN');

/** Advice about an origin that is not in the list. For `null` it is not to list it: every sandboxed frame of every page sends `null`. */
const advice = (origin) =>
  origin === 'null'
    ? 'this page has no origin of its own, serve it from localhost'
    : `to let this page call, start with: --cors ${origin}`;

/**
 * The access rules of a server.
 * @param {{host?: string, allowHost?: string, cors?: string}} settings
 */
export function accessOf({ host = '', allowHost, cors }) {
  const hosts = new Set([...entriesOf(allowHost), host.toLowerCase()]);
  const origins = cors === undefined ? undefined : entriesOf(cors);
  const isAny = origins?.includes('*') ?? false;

  /** Whether this server answers requests with this Host header. */
  function answersFor(host) {
    const name = withoutPort(host).replace(/\.+$/, '');
    return name !== '' && (isLocalhost(name) || isIP(name) !== 0 || hosts.has('*') || hosts.has(name.toLowerCase()));
  }

  /** The rights of a page with this origin, as `check` returns them. */
  function pageOf(origin) {
    if (isOfThisMachine(origin)) return {};
    if (isAny) return { origin: shown(origin), admitted: true };
    if (!origins) return { origin: shown(origin) };
    return origins.includes(origin.toLowerCase()) ? {} : { refused: `origin not allowed: ${advice(shown(origin))}` };
  }

  return {
    /** A warning to the operator about the pages that may call. */
    warning: origins?.includes('null')
      ? '--cors null: every web page can make a sandboxed frame, whose origin is null, so every page may call every method and use the keys of a development chain. Serve the page from localhost instead.'
      : undefined,
    /**
     * Checks a request's headers, each with all its values. Returns `refused`, the reason in words; or `origin`, that of a page that
     * may not call every method, with `admitted` if it may use keys all the same; or neither, for programs and pages of the operator.
     * @param {Record<string, string[] | undefined>} headers
     * @returns {{refused?: string, origin?: string, admitted?: boolean}}
     */
    check(headers) {
      const [host = '', ...more] = headers.host ?? [];
      if (more.length > 0 || !answersFor(host)) {
        return { refused: 'host not allowed: this server answers for localhost, IP addresses and names given by --allow-host' };
      }
      if (!headers.origin) return {};
      // A request with several origins is treated as one of an unknown origin.
      return pageOf(headers.origin.length === 1 ? headers.origin[0] : '');
    },
    /** The headers that let a page read the answer to a request that passed the check. */
    cors(headers) {
      if (!headers.origin) return {};
      const isListed = origins && !isAny;
      return {
        'access-control-allow-origin': isListed ? headers.origin[0] : '*',
        'access-control-expose-headers': 'retry-after',
        ...(isListed && { vary: 'origin' }),
      };
    },
  };
}
