"""Completes outfits with Spark: joins the customers' features to the outfits, completes a share of the parts per task,
and reads the suggestions.

    spark-submit --master 'local[2,4]' spark_nightly.py --outfits outfits.parquet --customers customers.parquet \
        --articles articles.parquet --folder /data/tonight --shares 8

Every executor needs the `atelier` binary, the release, and the folder. `local[2,4]` runs two tasks at a time and fails a
task at its fourth failure, as a cluster does by default. docs/operations.md describes the files.
"""

import argparse
import os
import subprocess
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr


def completer(folder, articles, shares):
    def complete(share):
        # Parts that exist are skipped, so a repeated task makes only those that are missing.
        subprocess.run(
            ["atelier", "complete", f"--input={folder}/outfits", f"--output={folder}/suggestions", "--k=20",
             f"--articles={articles}", "--set=engine.workers=1", f"--share={share}/{shares}"],
            check=True,
        )  # fmt: skip

    return complete


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
for name in ["outfits", "customers", "articles", "folder"]:
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--parts", type=int, default=32)
parser.add_argument("--shares", type=int, default=8)
options = parser.parse_args()
folder = options.folder

spark = SparkSession.builder.appName("atelier-nightly").getOrCreate()
customers = spark.read.parquet(options.customers).withColumnRenamed("id", "customer")
# Without its last article an outfit has none in that slot: an empty entry, or no entry, is a blank.
outfits = spark.read.parquet(options.outfits).drop("split")
outfits = outfits.withColumn("articles", expr("slice(articles, 1, size(articles) - 1)"))
parts = outfits.join(customers, "customer").repartition(options.parts)
if not os.path.exists(f"{folder}/outfits/_SUCCESS"):  # as Spark calls a folder that is complete
    parts.write.mode("overwrite").parquet(f"{folder}/outfits")

began = time.monotonic()
shares = spark.sparkContext.parallelize(range(options.shares), options.shares)
shares.foreach(completer(folder, options.articles, options.shares))
seconds = time.monotonic() - began

suggestions = spark.read.parquet(f"{folder}/suggestions")
print(f"{suggestions.count()} suggestions in {seconds:.2f} s")
spark.stop()
