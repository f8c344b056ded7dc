"""Every figure of the notebooks: data in, plotly figure out."""
