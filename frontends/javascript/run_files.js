// Runs a program on arrays in files, for ../check.sh:
// node run_files.js LIBRARY FOLDER CALLS [SIZE...]
import fs from 'node:fs';

import { Library } from './heterosis_library.js';

const [file, folder, calls, ...sizes] = process.argv.slice(2);
const entry = Object.values(new Library(file).entries)[0].at(...sizes.map(Number));
const inputs = entry.inputs.map(({ Type, size }, i) => {
  const array = new Type(size);
  new Uint8Array(array.buffer).set(fs.readFileSync(`${folder}/input${i}`));
  return array;
});
const outputs = entry.run(...inputs);
outputs.forEach((array, i) => fs.writeFileSync(`${folder}/output${i}`, array));
const before = process.hrtime.bigint();
for (let i = 0; i < Number(calls); ++i) entry.runInto(inputs, outputs);
console.log(Number(process.hrtime.bigint() - before) / Number(calls) / 1e3);
