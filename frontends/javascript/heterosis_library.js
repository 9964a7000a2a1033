// Libraries that Heterosis has exported, in Node: typed arrays in and out, without copies.
//
//   const mlp = new Library('libmy_mlp.so');
//   console.log(String(mlp));                       // what it takes and gives
//   const [scores] = mlp.entries.forward.run(x);

import fs from 'node:fs';
import path from 'node:path';

import koffi from 'koffi';

import { crc32 } from './crc32.js';

const VERSION = 2;
const ALIGNMENT = 64n; // of a workspace
const SEAL = 24; // bytes that end every library: magic, version, CRC-32, the size before it
const BLOCK = 1 << 20;
const FAMILIES = { 62: ['x86-64', 'x64'], 183: ['AArch64', 'arm64'] }; // of ELF's list, and Node's names

// By their numbers in heterosis.h. JavaScript has no 16-bit floats: they are given as their bits.
const TYPES = [
  ['bool', Uint8Array], ['int8', Int8Array], ['uint8', Uint8Array], ['int32', Int32Array],
  ['int64', BigInt64Array], ['float16', Uint16Array], ['bfloat16', Uint16Array],
  ['float32', Float32Array], ['float64', Float64Array], ['int16', Int16Array],
  ['uint16', Uint16Array], ['uint32', Uint32Array], ['uint64', BigUint64Array],
];

const ADDRESS = 'const void *';
const NUMBER = 'int64_t';
const TEXT = 'const char *';
const FUNCTIONS = {
  open_with: ['void *', [NUMBER, TEXT, 'int64_t *']],
  name: [TEXT, [ADDRESS]],
  entries: [NUMBER, [ADDRESS]],
  entry_name: [TEXT, [ADDRESS, NUMBER]],
  workspace_bytes: [NUMBER, [ADDRESS, NUMBER]],
  run_with: [NUMBER, [ADDRESS, NUMBER, ADDRESS, ADDRESS, ADDRESS, ADDRESS]],
  sizes: [NUMBER, [ADDRESS, NUMBER]],
  size_name: [TEXT, [ADDRESS, NUMBER, NUMBER]],
  size_least: [NUMBER, [ADDRESS, NUMBER, NUMBER]],
  size_most: [NUMBER, [ADDRESS, NUMBER, NUMBER]],
  at_bytes: [NUMBER, [ADDRESS, NUMBER]],
  at: ['void *', [ADDRESS, NUMBER, ADDRESS, ADDRESS, 'int64_t *']],
  threads: [NUMBER, [ADDRESS]],
  pool_bytes: [NUMBER, [ADDRESS, NUMBER]],
  pool_start: [NUMBER, [ADDRESS, ADDRESS, NUMBER]],
  message: [TEXT, [ADDRESS, NUMBER, NUMBER]],
};
for (const side of ['input', 'output']) {
  FUNCTIONS[`${side}s`] = [NUMBER, [ADDRESS, NUMBER]];
  FUNCTIONS[`${side}_name`] = [TEXT, [ADDRESS, NUMBER, NUMBER]];
  for (const fact of ['dtype', 'rank']) {
    FUNCTIONS[`${side}_${fact}`] = [NUMBER, [ADDRESS, NUMBER, NUMBER]];
  }
  FUNCTIONS[`${side}_extent`] = [NUMBER, [ADDRESS, NUMBER, NUMBER, NUMBER]];
  FUNCTIONS[`${side}_extent_text`] = [TEXT, [ADDRESS, NUMBER, NUMBER, NUMBER]];
}

/** A library that cannot be used, or a program that has failed. */
export class LibraryError extends Error {
  name = 'LibraryError';
}

const POOLS = []; // memory in which threads live, until the process ends

/**
 * An exported library; `entries` has its programs by name. Worker threads open their own.
 * A run shares its work between at most `threads`: as many as the library was exported for, unless
 * fewer are asked for. Parameters in a file of their own are expected beside the library.
 */
export class Library {
  #functions;
  #library;

  constructor(file, { threads } = {}) {
    check(file);
    const weights = path.join(path.dirname(file), `${path.parse(file).name}.weights`);
    if (fs.existsSync(weights)) check(weights);
    this.#functions = functionsOf(file);
    const code = new BigInt64Array(1);
    this.#library = this.#functions.open_with(VERSION, weights, code);
    if (!this.#library) {
      throw new LibraryError(`${file}: ${this.#functions.message(null, 0, code[0])}`);
    }
    const ask = asking(this.#functions, this.#library);
    this.name = ask('name');
    this.threads = threads ?? ask('threads');
    const pool = this.#started(ask);
    this.entries = {};
    for (let number = 0; number < ask('entries'); ++number) {
      const entry = new Entry(ask, number, pool);
      this.entries[entry.name] = entry;
    }
  }

  #started(ask) {
    const bytes = ask('pool_bytes', this.threads);
    if (bytes < 0) {
      const most = ask('threads');
      throw new LibraryError(`${this.name}: got threads=${this.threads}; expected 1 to ${most}`);
    }
    const pool = aligned(bytes);
    POOLS.push(pool);
    ask('pool_start', pool, this.threads);
    return pool;
  }

  toString() {
    return Object.values(this.entries).join('\n');
  }
}

/** What asks a library, or what stands for it where a program has some sizes. */
function asking(functions, library, prepared) {
  const ask = (name, ...rest) => functions[name](library, ...rest);
  ask.at = (number, sizes) => {
    const memory = aligned(ask('at_bytes', number));
    const code = new BigInt64Array(1);
    const found = ask('at', number, BigInt64Array.from(sizes, BigInt), memory, code);
    if (!found) {
      const given = sizes.map((size, i) => `${ask('size_name', number, i)} = ${size}`).join(', ');
      const why = ask('message', number, code[0]);
      throw new LibraryError(`${ask('entry_name', number)} at ${given}: ${why}`);
    }
    return asking(functions, found, memory);
  };
  ask.prepared = prepared; // lives as long as it is asked
  return ask;
}

/** One program of a library, with memory to run in. One that has `sizes` is run `at` some. */
export class Entry {
  #ask;
  #number;
  #pool;
  #workspace;

  constructor(ask, number, pool) {
    this.#ask = ask;
    this.#pool = pool;
    this.#number = number;
    this.name = ask('entry_name', number);
    this.sizes = Array.from({ length: ask('sizes', number) }, (_, i) => ({
      name: ask('size_name', number, i),
      least: ask('size_least', number, i),
      most: ask('size_most', number, i),
    }));
    this.inputs = this.#arrays('input');
    this.outputs = this.#arrays('output');
    if (!this.sizes.length) this.#workspace = aligned(ask('workspace_bytes', number));
  }

  /** The program for arrays of some sizes, in their order. */
  at(...sizes) {
    const names = this.sizes.map(({ name }) => name).join(', ');
    if (sizes.length !== this.sizes.length || !sizes.every(Number.isSafeInteger)) {
      throw new TypeError(`${this.name}: got the sizes (${sizes}); expected (${names})`);
    }
    if (!sizes.length) return this;
    return new Entry(this.#ask.at(this.#number, sizes), this.#number, this.#pool);
  }

  /** Run the program on typed arrays; new ones with the results. */
  run(...inputs) {
    const known = this.sizes.length ? [] : this.outputs;
    const outputs = known.map((array) => new array.Type(array.size));
    this.runInto(inputs, outputs);
    return outputs;
  }

  /** Run the program on typed arrays, and write the results to others. */
  runInto(inputs, outputs) {
    if (this.sizes.length) {
      const names = this.sizes.map(({ name }) => name).join(', ');
      throw new TypeError(`${this.name}: its sizes are not known; expected entry.at(${names})`);
    }
    expect(inputs, this.inputs, `${this.name}: inputs`);
    expect(outputs, this.outputs, `${this.name}: outputs`);
    const code = this.#ask(
      'run_with', this.#number, addresses(inputs), addresses(outputs), this.#workspace, this.#pool,
    );
    if (code) {
      throw new LibraryError(`${this.name}: ${this.#ask('message', this.#number, code)}`);
    }
  }

  toString() {
    return `${this.name}(${this.inputs.join(', ')}) -> (${this.outputs.join(', ')})`;
  }

  #arrays(side) {
    const ask = (fact, ...where) => this.#ask(`${side}_${fact}`, this.#number, ...where);
    const count = this.#ask(`${side}s`, this.#number);
    return Array.from({ length: count }, (_, position) => {
      const rank = ask('rank', position);
      const shape = Array.from({ length: rank }, (_, axis) => {
        const extent = ask('extent', position, axis);
        return extent < 0 ? ask('extent_text', position, axis) : extent;
      });
      return new Described(ask('name', position), ask('dtype', position), shape);
    });
  }
}

/** An array that a program takes or gives, in row-major order; extents of sizes are texts. */
class Described {
  constructor(name, number, shape) {
    [this.dtype, this.Type] = TYPES[number];
    this.name = name;
    this.shape = shape;
    this.size = shape.reduce((product, extent) => product * extent, 1);
  }

  toString() {
    return `${this.name}: ${this.dtype}[${this.shape.join(', ')}]`;
  }
}

/** Refuse files that are damaged: the system's loader would follow whatever stands there. */
function check(file) {
  const descriptor = fs.openSync(file, 'r');
  try {
    const size = Math.max(fs.fstatSync(descriptor).size - SEAL, 0);
    const seal = Buffer.alloc(SEAL);
    const held = fs.readSync(descriptor, seal, 0, SEAL, size);
    if (held < SEAL || seal.toString('latin1', 0, 8) !== 'HETEROSO') {
      throw new LibraryError(
        `${file} is cut short, stripped, or not a library that heterosis.export has written.`,
      );
    }
    const said = [seal.readUInt32LE(12), seal.readBigUInt64LE(16)];
    if (said[0] !== checksum(descriptor, size) || said[1] !== BigInt(size)) {
      throw new LibraryError(
        `${file} is damaged: its size or its checksum is wrong. Copy it again.`,
      );
    }
    if (seal.readUInt32LE(8) !== VERSION) {
      const version = seal.readUInt32LE(8);
      throw new LibraryError(
        `${file} has version ${version} of heterosis.h; this module expects ${VERSION}.`,
      );
    }
    const begin = Buffer.alloc(20);
    fs.readSync(descriptor, begin, 0, begin.length, 0);
    const [family, system] = FAMILIES[begin.readUInt16LE(18)] ?? ['one that is not known'];
    if (begin.toString('latin1', 0, 4) === '\x7fELF' && system !== process.arch) {
      throw new LibraryError(
        `${file} is for another family of processors: ${family}; this one is ${process.arch}. ` +
        'Export the library with another target, or use such a machine.',
      );
    }
  } finally {
    fs.closeSync(descriptor);
  }
}

function checksum(descriptor, size) {
  const block = Buffer.alloc(BLOCK);
  let sum = 0;
  for (let at = 0; at < size;) {
    const read = fs.readSync(descriptor, block, 0, Math.min(BLOCK, size - at), at);
    if (!read) break; // the file has become shorter, and the sum tells
    sum = crc32(block.subarray(0, read), sum);
    at += read;
  }
  return sum;
}

function functionsOf(file) {
  try {
    const loaded = koffi.load(path.resolve(file)); // a plain name would be searched for elsewhere
    const found = Object.entries(FUNCTIONS).map(([name, [returns, takes]]) =>
      [name, loaded.func(`heterosis_${name}`, returns, takes)]);
    return Object.fromEntries(found);
  } catch (error) {
    throw new LibraryError(`${file}: ${error.message}`, { cause: error });
  }
}

function expect(given, wanted, what) {
  const fits = given.length === wanted.length && wanted.every(
    ({ Type, size }, i) => given[i] instanceof Type && given[i].length === size,
  );
  if (fits) return;
  const got = given.map((array) => `${array?.constructor?.name} of ${array?.length}`).join(', ');
  const expected = wanted.map((array) => `${array} (${array.Type.name} of ${array.size})`);
  throw new TypeError(`${what}: got (${got}); expected (${expected.join(', ')})`);
}

const SPARE = new Uint8Array(64); // where arrays without elements stand: they have no address

function addresses(arrays) {
  return BigUint64Array.from(arrays, (array) => koffi.address(array.length ? array : SPARE));
}

function aligned(bytes) {
  const memory = new Uint8Array(bytes + Number(ALIGNMENT));
  const beyond = koffi.address(memory) % ALIGNMENT;
  return memory.subarray(Number((ALIGNMENT - beyond) % ALIGNMENT));
}
