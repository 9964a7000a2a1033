// Runs the MLP that README.md exports: node run_mlp.js libmy_mlp.so
import { Library } from './heterosis_library.js';

const mlp = new Library(process.argv[2] ?? 'libmy_mlp.so');
const x = Float32Array.from({ length: 512 }, (_, i) => Math.fround(i % 7) / 7);
const [scores] = mlp.entries.forward.run(x);
console.log(scores.join(' '));
