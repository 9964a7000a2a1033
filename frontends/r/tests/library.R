# HETEROSIS_LIBRARY=libmy_mlp.so ... Rscript tests/library.R; ../README.md says which libraries the
# variables name.
library(heterosis)

path <- Sys.getenv("HETEROSIS_LIBRARY")
mlp <- open_library(path)
stopifnot(format(mlp) == "forward(x: float32[1, 512]) -> (output: float32[1, 2])")
stopifnot(identical(names(entries(mlp)), "forward"))

scores <- run(mlp, rep(0.5, 512))$output
stopifnot(identical(dim(scores), c(1L, 2L)), scores[1, 1] != 0)
stopifnot(identical(run(mlp, matrix(0.5, 1, 512))$output, scores))
packed <- run_raw(mlp, list(writeBin(rep(0.5, 512), raw(), size = 4)))[[1]]
stopifnot(identical(readBin(packed, "numeric", 2, size = 4), as.vector(scores)))

fails <- function(expression, why) {
  message <- tryCatch({ expression; "no error" }, error = conditionMessage)
  if (!grepl(why, message, fixed = TRUE)) stop("expected '", why, "'; got '", message, "'")
}
fails(run(mlp, 1:3), "got an array of [3] for x")
fails(run(mlp, matrix(0, 2, 256)), "got an array of [2, 256]")
fails(run(mlp), "got 0 arrays")
fails(run(mlp, 1, entry = "backward"), "no entry 'backward'")
fails(run_raw(mlp, list(raw(3))), "expected a raw vector of 2048 bytes")
fails(open_library(path, threads = 99), "expected 1 to")
fails(open_library("nowhere.so"), "nowhere.so")

sized <- open_library(Sys.getenv("HETEROSIS_SIZED"))
stopifnot(format(sized) == "forward(x: float32[n0, 512]) -> (output: float32[n0, 2])")
rows <- run(at(sized, 3), matrix(0.5, 3, 512))$output
stopifnot(identical(dim(rows), c(3L, 2L)), identical(rows[3, ], rows[1, ]))
fails(run(sized, matrix(0.5, 3, 512)), "its sizes are not known")
fails(at(sized), "got the sizes ()")
for (why in c("forward at n0 = 0: ", "n0 from 1 to", "export it with")) fails(at(sized, 0), why)

small <- open_library(Sys.getenv("HETEROSIS_WHOLE"))
stopifnot(identical(run(small, c(-64, 0, 63))$output, c(-128, 0, 126)))
if (.Platform$OS.type == "unix") {  # a process that was forked has no threads to end
  child <- parallel::mcparallel({
    made <- run(small, 1:3)$output
    rm(small, envir = globalenv())
    gc()
    made
  })
  stopifnot(identical(parallel::mccollect(child)[[1]], c(2, 4, 6)))
}
for (wrong in c(128, -129, 1.5, NA, Inf)) {
  fails(run(small, c(0, wrong, 0)), "element 2 is ")
}

fails(open_library(Sys.getenv("HETEROSIS_OTHER")), "for another family of processors")

whole <- readBin(path, "raw", file.size(path))
place <- tempfile("libdamaged", fileext = ".so")
flipped <- whole
flipped[65] <- xor(flipped[65], as.raw(1))
other <- whole
other[length(whole) - 15] <- as.raw(3)
damaged <- list(list(raw(0), "cut short"), list(head(whole, -1), "cut short"),
                list(flipped, "damaged"), list(other, "another version"))
for (one in damaged) {
  writeBin(one[[1]], place)
  fails(open_library(place), one[[2]])
}
cat("all passed\n")
