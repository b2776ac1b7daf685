import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="A study")


@app.cell
def _():
    import marimo as mo

    import lasthop
    from lasthop import plots
    from lasthop.study import Study

    return Study, lasthop, mo, plots


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # A study

    A single run is not an answer: the next one meets other fades. A study repeats each point of a grid until
    the interval of the mean is narrow, and compares the schemes in pairs of runs over the same fades.
    """)
    return


@app.cell
def _(lasthop):
    scenario = lasthop.load(
        "ebsn-wide-area",
        [
            'schemes=["basic", "local-recovery", "ebsn"]',
            'sweep={"radio.channel.two-state.bad" = ["1 s", "2 s", "3 s", "4 s"]}',
        ],
    )
    scenario
    return (scenario,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    A point stops when the interval of every scheme is within 5 % of the mean, after at least 30 and at most
    200 runs. With `store="my.sqlite"` the runs would be kept, and a later study would go on from there.
    """)
    return


@app.cell
def _(Study, scenario):
    study = Study(scenario, precision=0.05, runs=(30, 200))
    study.run()
    study
    return (study,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Means with their intervals
    """)
    return


@app.cell
def _(plots, study):
    fade_key = "radio.channel.two-state.bad"
    plots.sweep_curve(study.summary(), fade_key, bands=True)
    return (fade_key,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Is the difference real?

    Each row is the mean of differences between two runs over the same fades, with its 95 % interval.
    `p_holm` takes into account that several comparisons are made.
    """)
    return


@app.cell
def _(fade_key, study):
    pairs = study.differences("basic")
    pairs[[fade_key, "scheme", "difference", "low", "high", "p_holm", "significant"]]
    return (pairs,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## The distribution, and not only its mean

    With fades of 4 s on average, a tenth of the transfers with plain TCP get at most about 3 kbps, and a
    tenth at least 9. With EBSN nine tenths get at least 7.
    """)
    return


@app.cell
def _(fade_key, plots, study):
    rows = study.to_pandas()
    plots.cdf(rows[rows[fade_key] == "4 s"], "throughput_bps")
    return


@app.cell
def _(pairs):
    assert pairs["significant"].all()
    return


if __name__ == "__main__":
    app.run()
