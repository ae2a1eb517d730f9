# Fits y ~ s(x0) + s(x1) + ... to every CSV file of a folder; mgcv.py reads what it writes.
# Arguments: folder, family, basis dimension of each smooth.
suppressMessages(library(mgcv))
arguments <- commandArgs(trailingOnly = TRUE)
family <- switch(arguments[2],
  gaussian = gaussian(), bernoulli = binomial(), poisson = poisson(), overdispersed = quasipoisson())
k <- as.integer(arguments[3])
for (file in list.files(arguments[1], "[.]csv$", full.names = TRUE)) {
  data <- read.csv(file)
  columns <- setdiff(names(data), "y")
  terms <- sprintf("s(%s, k = %d)", columns, k)
  set.seed(1)
  answer <- tryCatch({
    fit <- gam(reformulate(terms, "y"), family = family, data = data, method = "REML", select = TRUE)
    # with the uncertainty of the smoothing parameters (Wood, Pya and Saefken 2016)
    covariance <- vcov(fit, unconditional = TRUE)
    design <- predict(fit, type = "lpmatrix")
    unlist(lapply(fit$smooth, function(smooth) {
      own <- smooth$first.para:smooth$last.para
      rows <- design[, own, drop = FALSE]
      mean <- rows %*% coef(fit)[own]
      block <- eigen(covariance[own, own], symmetric = TRUE)
      factor <- rows %*% block$vectors %*% diag(sqrt(pmax(block$values, 0)), length(own))
      std <- sqrt(rowSums(factor^2))
      draws <- abs(factor %*% matrix(rnorm(1000 * length(own)), length(own))) / pmax(std, 1e-300)
      half <- quantile(apply(draws, 2, max), 0.95)
      c(mean, std, half)
    }))
  }, error = function(problem) {
    message(basename(file), ": ", conditionMessage(problem))
    NULL
  })
  if (!is.null(answer)) writeBin(as.double(answer), sub("csv$", "bin", file))
}
