import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="The page")


@app.cell
def _():
    import marimo as mo

    import lasthop
    from lasthop.web.widget import Explorer

    return Explorer, lasthop, mo


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # The page, and Python behind it

    The page of `lasthop web` is a widget: what its sliders say is a scenario in Python. The simulator runs in
    the browser, so that sliders follow the hand; studies, fits and data frames are here.
    """)
    return


@app.cell
def _(Explorer, mo):
    explorer = Explorer("ebsn-wide-area", state="a=basic&b=ebsn", height=1100)
    page = mo.ui.anywidget(explorer)
    page
    return explorer, page


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## What the page shows, in Python

    In marimo the cells below follow every change. In Jupyter show `explorer` itself, and run them again.
    """)
    return


@app.cell
def _(explorer, page):
    _ = page.value
    explorer.command or "the page has not run yet"
    return


@app.cell
def _(explorer, lasthop, page):
    _ = page.value
    scenario = explorer.scenario
    lasthop.run_each(scenario)
    return (scenario,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## From one run to a study

    Is the difference on the page that of one run? A study of the same scenario makes more of them, here fifty
    of each scheme, in pairs over the same fades.
    """)
    return


@app.cell
def _(lasthop, scenario):
    study = lasthop.study.Study(scenario, precision=None, runs=(50, 50))
    study.run()
    study
    return (study,)


@app.cell
def _(lasthop, study):
    lasthop.plots.cdf(study.to_pandas(), "completion_time_s")
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## And back

    Python changes the page, too: a step of a lesson, or the schemes and sliders as an address has them.
    """)
    return


@app.cell
def _(mo):
    lesson = mo.ui.dropdown(
        {
            "as it was": "a=basic&b=ebsn",
            "why TCP stalls after a fade": "lesson=fade&step=3",
            "what a base station can hide": "lesson=snoop&step=2",
        },
        value="as it was",
        label="show",
    )
    lesson
    return (lesson,)


@app.cell
def _(explorer, lesson):
    explorer.state = lesson.value
    return


if __name__ == "__main__":
    app.run()
