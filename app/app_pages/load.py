"""soon."""
import streamlit as st
st.title("load")
