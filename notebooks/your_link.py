import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Your link")


@app.cell
def _():
    import tempfile
    from pathlib import Path

    import marimo as mo

    import lasthop
    from lasthop import plots
    from lasthop.study import Study

    return Path, Study, lasthop, mo, plots, tempfile


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # Your link

    Which remedy helps on *your* last hop? Begin with a preset that is like it, replace its numbers by
    measurements, and compare. `lasthop links` prints where each number of a preset comes from.
    """)
    return


@app.cell
def _(lasthop):
    presets = {link.name: link for link in lasthop.links()}
    presets["starlink"]
    return (presets,)


@app.cell
def _(mo, presets):
    preset = mo.ui.dropdown(list(presets), value="starlink", label="preset")
    preset
    return (preset,)


@app.cell
def _(lasthop, plots, preset):
    scenario = lasthop.load("starlink", [f"radio.preset={preset.value}", 'title="A download"', "limit=30 s"])
    plots.link_timing(scenario, 30) if scenario.varying_links else scenario
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Two senders on it: CUBIC and BBR, as a Linux server has them.
    """)
    return


@app.cell
def _(lasthop, preset):
    results = {}
    for sender in ("linux", "linux-bbr"):
        settings = [f"radio.preset={preset.value}", 'title="A download"', "limit=30 s", f"sender={sender}"]
        results[sender] = lasthop.run_each(lasthop.load("starlink", settings), ["basic", "arq", "snoop"])
    results["linux"]
    return (results,)


@app.cell
def _(results):
    results["linux-bbr"]
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## A measured trace of the rate

    A Mahimahi trace has a line for each opportunity to send 1500 bytes, with its time in milliseconds. This
    one is made up: 12 Mbps for half a second, then 1.2 Mbps. Take the trace of your link instead.
    """)
    return


@app.cell
def _(Path, tempfile):
    folder = Path(tempfile.mkdtemp())
    times = [*range(1, 501), *range(510, 1001, 10)]
    trace = folder / "mine.down"
    _ = trace.write_text("".join(f"{time}\n" for time in times))
    return folder, trace


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Losses as a measurement states them

    A ping or a capture gives the share of packets that is lost, and how many are lost in a row: here 1 %,
    three in a row.
    """)
    return


@app.cell
def _(folder, lasthop, trace):
    mine = folder / "mine.toml"
    _ = mine.write_text(
        f'''
    title = "My link"
    limit = "20 s"
    schemes = ["basic", "arq", "snoop"]
    [transfer]
    size = "unlimited"
    [wired]
    rate = "1 Gbps"
    delay = "20 ms"
    [radio]
    rate.mahimahi.file = "{trace.name}"
    delay = "5 ms"
    queue = "100 packets"
    channel.gilbert = {{ loss = "1 %", burst = 3 }}
    [radio.uplink]
    rate = "5 Mbps"
    channel = "perfect"
    '''
    )
    my_link = lasthop.load(mine)
    lasthop.run_each(my_link)
    return (my_link,)


@app.cell
def _(my_link, plots):
    plots.link_timing(my_link, 5)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    What the losses mean by time and by packets:
    """)
    return


@app.cell
def _(my_link):
    my_link.channel_bursts()
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## With intervals
    """)
    return


@app.cell
def _(Study, my_link):
    study = Study(my_link, precision=0.05, runs=(10, 40))
    study.run()
    study
    return (study,)


@app.cell
def _(study):
    study.differences("basic")[["scheme", "ratio", "ratio_low", "ratio_high", "significant"]]
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Let a measurement be fitted

    `lasthop.measurement.read("FILE")` reads what irtt, ping, iperf3, ss, Flent or tcpdump wrote. Here probes
    are made up: one every 20 ms for five minutes, of which bursts of 0.4 s are lost every 4 s on average.
    """)
    return


@app.cell
def _():
    import numpy as np

    from lasthop.fitting import fit
    from lasthop.measurement import Direction, Measurement, Probes

    random = np.random.default_rng(1)
    periods = np.cumsum(random.exponential(np.tile([4.0, 0.4], 200)))
    sent = np.arange(0, 300, 0.02)
    lost = np.searchsorted(periods, sent) % 2 == 1
    probes = Probes(Direction.DOWN, sent, lost, None)
    fitted = fit(Measurement("made up", "csv", 300.0, probes=(probes,)), rate_bps=8e6)
    fitted
    return (fitted,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    The fitted link is a scenario like any other. `lasthop advise FILE`, or `lasthop.advice.advise(fitted)`,
    goes through the remedies by itself, with what is uncertain in the fit, and says which to use; it takes
    less than a minute.
    """)
    return


@app.cell
def _(fitted, lasthop):
    lasthop.run_each(fitted.scenario(), ["basic", "arq", "snoop"])
    return


if __name__ == "__main__":
    app.run()
