"""MaskTune Studio. Start it with ``streamlit run app/main.py``."""

import os
import sys
from pathlib import Path

# OpenMP's threads spin for a core that a job has, and both take many times as long. Read when
# PyTorch is imported; jobs inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Streamlit puts app/ on the path, not the repository; without this line `masktune` is not found.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import streamlit as st

from app.shared.pages import frame, open_clicked, pages, tab_title, write_address
from app.state import begin
from app.warm import warm

page = st.navigation(pages(), position="hidden")
begin(page.title)
open_clicked()
st.set_page_config(
    page_title=tab_title(page.title),
    page_icon=str(Path(__file__).resolve().parents[1] / "assets" / "icon.png"),
    layout="wide",
)
frame(page.title)
page.run()
write_address()
warm()
