// HETEROSIS_LIBRARY=libmy_mlp.so ... npm test; ../README.md says which libraries the variables name.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';

import { crc32, crc32ByTables } from './crc32.js';
import { Library, LibraryError } from './heterosis_library.js';

const file = process.env.HETEROSIS_LIBRARY ?? 'libmy_mlp.so';
const mlp = new Library(file);
const { forward } = mlp.entries;
const x = new Float32Array(512).fill(0.5);

test('a library tells what it takes and gives', () => {
  assert.equal(String(mlp), 'forward(x: float32[1, 512]) -> (output: float32[1, 2])');
  assert.deepEqual(forward.inputs[0].shape, [1, 512]);
});

test('results are written to new arrays, or where the caller wants them', () => {
  const [scores] = forward.run(x);
  const memory = new Float32Array(4);
  forward.runInto([x], [memory.subarray(1, 3)]);
  assert.deepEqual([...memory], [0, ...scores, 0]);
  assert.notDeepEqual([...scores], [0, 0]);
});

test('a program runs at the sizes that it has', () => {
  const sized = new Library(process.env.HETEROSIS_SIZED ?? 'libsized.so').entries.forward;
  assert.equal(String(sized), 'forward(x: float32[n0, 512]) -> (output: float32[n0, 2])');
  assert.equal(sized.sizes[0].name, 'n0');
  const three = sized.at(3);
  assert.deepEqual(three.outputs[0].shape, [3, 2]);
  const [scores] = three.run(new Float32Array(3 * 512).fill(0.5));
  assert.deepEqual(scores.subarray(4), scores.subarray(0, 2));
  assert.throws(() => sized.run(x), /sizes are not known/);
  assert.throws(() => sized.at(), /got the sizes \(\)/);
  assert.throws(() => sized.at(0), /forward at n0 = 0: .* n0 from 1 to .* export it with/);
});

test('other types and sizes are refused', () => {
  assert.throws(() => forward.run(new Float64Array(512)), /got \(Float64Array of 512\)/);
  assert.throws(() => forward.run(new Float32Array(511)), TypeError);
  assert.throws(() => forward.run(), /got \(\)/);
  assert.throws(() => forward.runInto([x], [null]), TypeError);
});

test('checksums are the same in every version of Node', () => {
  for (const sum of [crc32, crc32ByTables]) {
    assert.equal(sum(Buffer.from('123456789')), 0xcbf43926);
    const bytes = fs.readFileSync(file).subarray(0, 100_003);
    assert.equal(sum(bytes), crc32(bytes.subarray(777), crc32(bytes.subarray(0, 777))));
    assert.equal(sum(bytes.subarray(777), sum(bytes.subarray(0, 777))), crc32(bytes));
  }
});

test('damaged files are refused before they are loaded', () => {
  const whole = fs.readFileSync(file);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'heterosis-'));
  const place = path.join(folder, 'libdamaged.so');
  const refused = (content, why) => {
    fs.writeFileSync(place, content);
    assert.throws(() => new Library(place), (e) => e instanceof LibraryError && why.test(e.message));
  };
  const flipped = Buffer.from(whole);
  flipped[64] ^= 1;
  const other = Buffer.from(whole);
  other[whole.length - 16] = 3;
  refused(Buffer.alloc(0), /cut short/);
  refused(whole.subarray(0, -1), /cut short/);
  refused(flipped, /damaged/);
  refused(whole.subarray(4096), /damaged/);
  refused(other, /has version 3/);
  const foreign = process.env.HETEROSIS_OTHER ?? 'libother.so';
  refused(fs.readFileSync(foreign), /is for another family of processors/);
  fs.rmSync(folder, { recursive: true });
  assert.throws(() => new Library(place), { code: 'ENOENT' });
});
