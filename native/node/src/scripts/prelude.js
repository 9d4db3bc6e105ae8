// The objects and functions that tracers in geth's form expect, and the functions that report a run to a tracer. `context.rs` evaluates
// this file for each transaction and calls the function with `host`, whose functions query the program about the run.
(function (host) {
  'use strict';

  // A trace depends on the run alone: scripts have no clock, and the same random numbers in each run. The numbers are those of C++'s
  // minstd_rand, scaled to the range from 0 to 1.
  delete globalThis.Date;
  let randomState = 1;
  Math.random = () => {
    randomState = (randomState * 48271) % 2147483647;
    return randomState / 2147483647;
  };

  const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

  function hexOf(bytes) {
    let text = '';
    for (let index = 0; index < bytes.length; index += 1) text += DIGITS[bytes[index]];
    return text;
  }

  /** The bytes of an array, or, if `allowsText`, of hexadecimal digits. Another text has no bytes. */
  function bytesOf(value, allowsText) {
    if (value instanceof Uint8Array) return value;
    if (Array.isArray(value)) return Uint8Array.from(value);
    if (allowsText && typeof value === 'string') {
      let digits = value.replace(/^0x/i, '');
      if (digits.length % 2 === 1) digits = `0${digits}`;
      if (!/^[0-9a-f]*$/i.test(digits)) return new Uint8Array(0);
      return Uint8Array.from({ length: digits.length / 2 }, (_, index) => parseInt(digits.substr(2 * index, 2), 16));
    }
    throw new TypeError('invalid buffer type');
  }

  /** The last `size` bytes; shorter ones get zeros in front. */
  function fitted(bytes, size) {
    const fit = new Uint8Array(size);
    const last = bytes.length > size ? bytes.subarray(bytes.length - size) : bytes;
    fit.set(last, size - last.length);
    return fit;
  }

  const addressHex = (value) => hexOf(fitted(bytesOf(value, false), 20));
  const wholeNumber = (value, name) => {
    const number = Number(value);
    if (!Number.isSafeInteger(number)) throw new RangeError(`${name} is not a whole number`);
    return number;
  };

  // --- Large numbers -------------------------------------------------------------------------------------------

  /** The BigInt of a number, a text or a large number, as the library big-integer reads it. */
  function toBigInt(value, radix) {
    if (value instanceof Large) return value.value;
    if (typeof value === 'bigint') return value;
    if (value === undefined) return 0n;
    if (typeof value === 'number') return BigInt(value);
    const text = String(value).trim();
    if (radix === undefined || Number(radix) === 10) return BigInt(text);
    const base = BigInt(Number(radix));
    const negative = text.startsWith('-');
    let number = 0n;
    for (const digit of negative ? text.slice(1) : text) {
      const next = parseInt(digit, Number(radix));
      if (Number.isNaN(next)) throw new Error(`${digit} is not a digit of base ${radix}`);
      number = number * base + BigInt(next);
    }
    return negative ? -number : number;
  }

  const absolute = (value) => (value < 0n ? -value : value);
  const compareValues = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
  function greatestDivisor(one, other) {
    let [left, right] = [absolute(one), absolute(other)];
    while (right !== 0n) [left, right] = [right, left % right];
    return left;
  }

  /** A large number with the methods of the library big-integer, which geth gives to tracers as `bigInt`. */
  class Large {
    constructor(value) { this.value = value; }
    add(other) { return new Large(this.value + toBigInt(other)); }
    subtract(other) { return new Large(this.value - toBigInt(other)); }
    multiply(other) { return new Large(this.value * toBigInt(other)); }
    divide(other) { return new Large(this.value / toBigInt(other)); }
    mod(other) { return new Large(this.value % toBigInt(other)); }
    divmod(other) { return { quotient: this.divide(other), remainder: this.mod(other) }; }
    pow(other) { return new Large(this.value ** toBigInt(other)); }
    modPow(exponent, modulus) {
      const by = toBigInt(modulus);
      let [result, base, left] = [1n, this.value % by, toBigInt(exponent)];
      for (; left > 0n; left >>= 1n, base = (base * base) % by) if (left & 1n) result = (result * base) % by;
      return new Large(result % by);
    }
    square() { return new Large(this.value * this.value); }
    negate() { return new Large(-this.value); }
    abs() { return new Large(absolute(this.value)); }
    next() { return new Large(this.value + 1n); }
    prev() { return new Large(this.value - 1n); }
    and(other) { return new Large(this.value & toBigInt(other)); }
    or(other) { return new Large(this.value | toBigInt(other)); }
    xor(other) { return new Large(this.value ^ toBigInt(other)); }
    not() { return new Large(~this.value); }
    shiftLeft(other) { return new Large(this.value << toBigInt(other)); }
    shiftRight(other) { return new Large(this.value >> toBigInt(other)); }
    bitLength() { return new Large(BigInt(this.value === 0n ? 0 : absolute(this.value).toString(2).length)); }
    compare(other) { return compareValues(this.value, toBigInt(other)); }
    compareAbs(other) { return compareValues(absolute(this.value), absolute(toBigInt(other))); }
    equals(other) { return this.compare(other) === 0; }
    notEquals(other) { return this.compare(other) !== 0; }
    greater(other) { return this.compare(other) > 0; }
    greaterOrEquals(other) { return this.compare(other) >= 0; }
    lesser(other) { return this.compare(other) < 0; }
    lesserOrEquals(other) { return this.compare(other) <= 0; }
    isZero() { return this.value === 0n; }
    isUnit() { return absolute(this.value) === 1n; }
    isNegative() { return this.value < 0n; }
    isPositive() { return this.value > 0n; }
    isEven() { return (this.value & 1n) === 0n; }
    isOdd() { return (this.value & 1n) === 1n; }
    isDivisibleBy(other) { return toBigInt(other) !== 0n && this.value % toBigInt(other) === 0n; }
    toJSNumber() { return Number(this.value); }
    valueOf() { return Number(this.value); }
    toString(radix) { return this.value.toString(radix === undefined ? 10 : Number(radix)); }
    toJSON() { return this.value.toString(); }
  }
  const ALIASES = {
    plus: 'add', minus: 'subtract', times: 'multiply', over: 'divide', remainder: 'mod', compareTo: 'compare', eq: 'equals',
    neq: 'notEquals', gt: 'greater', geq: 'greaterOrEquals', lt: 'lesser', leq: 'lesserOrEquals',
  };
  for (const [alias, name] of Object.entries(ALIASES)) Large.prototype[alias] = Large.prototype[name];

  const bigInt = (value, radix) => new Large(toBigInt(value, radix));
  Object.assign(bigInt, {
    zero: new Large(0n),
    one: new Large(1n),
    minusOne: new Large(-1n),
    isInstance: (value) => value instanceof Large,
    max: (one, other) => (toBigInt(one) > toBigInt(other) ? bigInt(one) : bigInt(other)),
    min: (one, other) => (toBigInt(one) < toBigInt(other) ? bigInt(one) : bigInt(other)),
    gcd: (one, other) => new Large(greatestDivisor(toBigInt(one), toBigInt(other))),
    lcm: (one, other) => bigInt(one).abs().multiply(bigInt(other).abs()).divide(bigInt.gcd(one, other)),
  });

  /** The number of 32 bytes. */
  const largeOf = (bytes) => new Large(bytes.length === 0 ? 0n : BigInt(`0x${hexOf(bytes)}`));

  // --- Functions -----------------------------------------------------------------------------------------------

  Object.assign(globalThis, {
    bigInt,
    toHex: (value) => `0x${hexOf(bytesOf(value, false))}`,
    toWord: (value) => fitted(bytesOf(value, true), 32),
    toAddress: (value) => fitted(bytesOf(value, true), 20),
    toContract: (from, nonce) => host.created(hexOf(fitted(bytesOf(from, true), 20)), wholeNumber(nonce, 'nonce')),
    toContract2: (from, salt, code) =>
      host.created2(hexOf(fitted(bytesOf(from, true), 20)), hexOf(fitted(bytesOf(salt, true), 32)), hexOf(bytesOf(code, true))),
    isPrecompiled: (value) => host.native(hexOf(fitted(bytesOf(value, true), 20)))[0] === 1,
    slice: (value, start, end) => {
      const bytes = bytesOf(value, false);
      if (!(start >= 0 && start <= end && end <= bytes.length)) {
        throw new RangeError(`${bytes.length} bytes were read from ${start} to ${end}`);
      }
      return bytes.slice(start, end);
    },
  });

  // --- What scripts can read -----------------------------------------------------------------------------------

  // The positions of an instruction's numbers, in the order of `step_frame` in engine.rs.
  const [OPCODE, PC, GAS, COST, DEPTH, REFUND, MEMORY] = [0, 1, 2, 3, 4, 5, 6];
  // The instruction of the present report.
  let current = { numbers: new Float64Array(7), name: '', error: undefined, stack: new Uint8Array(0) };

  const memory = (begin, end) => {
    const [from, to] = [wholeNumber(begin, 'begin'), wholeNumber(end, 'end')];
    if (from < 0 || to < from) throw new RangeError(`memory was read from ${from} to ${to}`);
    return from === to ? new Uint8Array(0) : host.memory(from, to);
  };
  const log = {
    op: {
      toNumber: () => current.numbers[OPCODE],
      toString: () => current.name,
      isPush: () => current.numbers[OPCODE] >= 0x5f && current.numbers[OPCODE] <= 0x7f,
    },
    stack: {
      length: () => current.stack.length / 32,
      peek: (index) => {
        const end = current.stack.length - 32 * wholeNumber(index, 'index');
        if (end < 32 || index < 0) throw new RangeError(`word ${index} of a stack of ${current.stack.length / 32} was read`);
        return largeOf(current.stack.subarray(end - 32, end));
      },
    },
    memory: {
      length: () => current.numbers[MEMORY],
      slice: memory,
      getUint: (offset) => {
        const start = wholeNumber(offset, 'offset');
        if (start < 0 || start + 32 > current.numbers[MEMORY]) throw new RangeError(`memory was read at ${start}`);
        return largeOf(memory(start, start + 32));
      },
    },
    contract: {
      getCaller: () => host.contract().slice(0, 20),
      getAddress: () => host.contract().slice(20, 40),
      getValue: () => largeOf(host.contract().slice(40, 72)),
      getInput: () => host.contract().slice(72),
    },
    getPC: () => current.numbers[PC],
    getGas: () => current.numbers[GAS],
    getCost: () => current.numbers[COST],
    getDepth: () => current.numbers[DEPTH],
    getRefund: () => current.numbers[REFUND],
    getError: () => current.error,
  };
  const db = {
    exists: (address) => host.account(addressHex(address))[0] === 1,
    getNonce: (address) => Number(BigInt(`0x${hexOf(host.account(addressHex(address)).subarray(1, 9))}`)),
    getBalance: (address) => largeOf(host.account(addressHex(address)).subarray(9)),
    getCode: (address) => host.code(addressHex(address)),
    getState: (address, slot) => host.word(addressHex(address), hexOf(fitted(bytesOf(slot, false), 32))),
  };

  let tracer, hooks;
  const setCurrent = (numbers, name, error, stack) => {
    current = { numbers, name, error: error ?? undefined, stack };
  };
  return {
    /** Takes the script's object, and calls its `setup`. Returns 1 if it has `step`, plus 2 if it has `enter` and `exit`. */
    load(given, config) {
      tracer = given;
      if (tracer === null || typeof tracer !== 'object') throw new TypeError('the script is not an object with functions');
      const found = (name) => (typeof tracer[name] === 'function' ? tracer[name] : undefined);
      hooks = { step: found('step'), fault: found('fault'), enter: found('enter'), exit: found('exit'), result: found('result') };
      for (const name of ['result', 'fault']) {
        if (hooks[name] === undefined) throw new TypeError(`the script has no function ${name}`);
      }
      if ((hooks.enter === undefined) !== (hooks.exit === undefined)) {
        throw new TypeError('the script has one of the functions enter and exit: it needs both or none');
      }
      found('setup')?.call(tracer, config);
      return (hooks.step === undefined ? 0 : 1) + (hooks.enter === undefined ? 0 : 2);
    },
    step(numbers, name, error, stack) {
      setCurrent(numbers, name, error, stack);
      hooks.step.call(tracer, log, db);
    },
    fault(numbers, name, error, stack) {
      setCurrent(numbers, name, error, stack);
      hooks.fault.call(tracer, log, db);
    },
    enter(kind, from, to, input, gas, value) {
      hooks.enter.call(tracer, {
        getType: () => kind,
        getFrom: () => from,
        getTo: () => to,
        getInput: () => input,
        getGas: () => gas,
        getValue: () => (value ? largeOf(value) : undefined),
      });
    },
    exit(gasUsed, output, error) {
      hooks.exit.call(tracer, {
        getGasUsed: () => gasUsed,
        getOutput: () => output,
        getError: () => error ?? undefined,
      });
    },
    /** Returns the trace in JSON. */
    result(context) {
      for (const name of ['value', 'gasPrice']) context[name] = largeOf(context[name]);
      return JSON.stringify(hooks.result.call(tracer, context, db)) ?? 'null';
    },
  };
});
