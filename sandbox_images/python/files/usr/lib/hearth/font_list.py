"""Makes matplotlib's font list for the image, with names that are usual elsewhere.

Programs written for other machines ask for a Chinese font by its name there. Each of these names
leads to the one such font of the image, so that they show text and not empty boxes.
"""

import dataclasses
import os

import matplotlib
from matplotlib import font_manager

FONT = "WenQuanYi Micro Hei"
NAMES_ELSEWHERE = [
    "SimHei", "SimSun", "KaiTi", "FangSong", "Microsoft YaHei", "Microsoft JhengHei",
    "PingFang SC", "Heiti SC", "Heiti TC", "STHeiti", "Songti SC", "Arial Unicode MS",
    "Noto Sans CJK SC", "Noto Sans CJK TC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Sans SC",
    "Source Han Sans SC", "Source Han Sans CN", "WenQuanYi Zen Hei", "Hiragino Sans", "Malgun Gothic",
]

fonts = font_manager.fontManager
(entry,) = [font for font in fonts.ttflist if font.name == FONT]
fonts.ttflist += [dataclasses.replace(entry, name=name) for name in NAMES_ELSEWHERE]
path = os.path.join(matplotlib.get_cachedir(), f"fontlist-v{fonts.__version__}.json")
font_manager.json_dump(fonts, path)
