"""The ground that `evaluation` and `spkver` stand on: files, arrays, workers, runs, command lines. It knows neither
speech nor scores, and imports neither package."""
