# Runs a program on arrays in files, for ../check.sh:
# Rscript run_files.R LIBS LIBRARY FOLDER CALLS [SIZE...]
words <- commandArgs(trailingOnly = TRUE)
library(heterosis, lib.loc = words[1])

opened <- at(open_library(words[2]), as.numeric(words[-(1:4)]))
place <- function(side, number) file.path(words[3], paste0(side, number - 1))
entry <- entries(opened)[[1]]
inputs <- lapply(seq_along(entry$inputs), function(i) {
  readBin(place("input", i), "raw", entry$inputs[[i]]$bytes)
})
outputs <- run_raw(opened, inputs)
for (i in seq_along(outputs)) writeBin(outputs[[i]], place("output", i))
calls <- as.integer(words[4])
took <- system.time(for (i in seq_len(calls)) run_raw(opened, inputs))[["elapsed"]]
cat(took / calls * 1e6, "\n")
