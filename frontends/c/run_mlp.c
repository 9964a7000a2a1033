/* Runs the MLP that README.md exports: cc run_mlp.c -I. -L. -lmy_mlp -Wl,-rpath,. -o run_mlp */
#include <stdio.h>
#include <stdlib.h>

#include "my_mlp.h"

int main(void) {
  int64_t code;
  const void* library = heterosis_open(HETEROSIS_VERSION, &code);
  if (!library) {
    fprintf(stderr, "%s\n", heterosis_message(NULL, 0, code));
    return 1;
  }
  static float x[512], scores[2];
  for (int i = 0; i < 512; ++i) x[i] = (float)(i % 7) / 7;
  size_t bytes = (size_t)heterosis_workspace_bytes(library, 0);
  void* workspace = aligned_alloc(64, (bytes + 64) / 64 * 64);
  code = my_mlp_forward(library, x, scores, workspace);
  free(workspace);
  if (code) {
    fprintf(stderr, "%s\n", heterosis_message(library, 0, code));
    return 1;
  }
  printf("%a %a\n", scores[0], scores[1]);
  return 0;
}
