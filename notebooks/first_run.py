import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="A first run")


@app.cell
def _():
    import marimo as mo

    import lasthop
    from lasthop import plots

    return lasthop, mo, plots


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # A first run

    A file travels from a server over a wired network to a base station, and from there over a cellular link
    that fades for 4 s after every 10 good seconds. What does TCP make of it, and what do three remedies
    gain?
    """)
    return


@app.cell
def _(lasthop):
    scenario = lasthop.load("ebsn-example")
    scenario
    return (scenario,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Each scheme runs over the same fades, so that the differences are the schemes' own.
    """)
    return


@app.cell
def _(lasthop, scenario):
    runs = lasthop.run_each(scenario, trace=True, series=True)
    runs
    return (runs,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Why basic TCP stalls

    Each fade loses a window of packets. The retransmission timer expires, and doubles each time a
    retransmission meets a fade as well: after the fourth timeout TCP waits for a minute, although the link is
    good most of the time.
    """)
    return


@app.cell
def _(plots, runs, scenario):
    bad = scenario.bad_periods(until=260)
    plots.time_sequence(runs[0], bad)
    return (bad,)


@app.cell
def _(bad, plots, runs):
    plots.packet_traces(runs, bad_periods=bad)
    return


@app.cell
def _(bad, plots, runs):
    plots.cwnd(runs[-1], bad)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Turn a knob

    How long may the fades be before the base station's notices (EBSN) no longer help? In marimo the cells
    below follow the slider; elsewhere change its value.
    """)
    return


@app.cell
def _(mo):
    fade = mo.ui.slider(0.5, 8, step=0.5, value=4, label="fades last (s)", show_value=True)
    fade
    return (fade,)


@app.cell
def _(fade, lasthop):
    changed = lasthop.load("ebsn-example", [f"radio.channel.fixed-periods.bad={fade.value} s"])
    lasthop.run_each(changed, ["basic", "ebsn"])
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    A run has every metric of the reference, and its packet trace as columns of NumPy arrays or as a data
    frame.
    """)
    return


@app.cell
def _(lasthop, runs):
    events = lasthop.events_frame(runs[0])
    events[events["event"] == "lost"].head()
    return


if __name__ == "__main__":
    app.run()
