# Runs the MLP that README.md exports: Rscript run_mlp.R libmy_mlp.so
library(heterosis)

words <- commandArgs(trailingOnly = TRUE)
mlp <- open_library(if (length(words)) words[1] else "libmy_mlp.so")
scores <- run(mlp, (0:511 %% 7) / 7)$output
cat(scores, "\n")
