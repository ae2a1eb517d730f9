# Fits groups' lines or curves to every CSV file of a folder; known_columns.py reads what it writes:
# means and standard errors at the rows of the .at file, the variance of slopes (lines only), CPU seconds.
suppressMessages(library(mgcv))
arguments <- commandArgs(trailingOnly = TRUE)
lines <- arguments[2] == "lines"
for (file in list.files(arguments[1], "[.]csv$", full.names = TRUE)) {
  data <- read.csv(file)
  at <- read.csv(sub("csv$", "at", file))
  data$group <- factor(data$group)
  at$group <- factor(at$group, levels = levels(data$group))
  seconds <- system.time({
    if (lines) {
      fit <- gam(y ~ s(x, k = 20) + s(group, bs = "re") + s(group, x, bs = "re"),
                 data = data, method = "REML")
    } else {
      fit <- gam(y ~ s(x, k = 20) + s(x, group, bs = "fs", k = 8), data = data, method = "REML")
    }
  })
  answer <- predict(fit, at, se.fit = TRUE, unconditional = TRUE)
  variance <- if (lines) fit$sig2 / fit$sp[["s(group,x)"]] else NA
  writeBin(as.double(c(answer$fit, answer$se.fit, variance, sum(seconds[1:2]))),
           sub("csv$", "bin", file))
}
