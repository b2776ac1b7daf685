import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="A paper")


@app.cell
def _():
    import marimo as mo

    from lasthop import papers

    return mo, papers


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # A paper, reproduced

    The experiments of eight papers come with Lasthop, as scenarios and as claims that can fail. This one is
    Bakshi, Krishna, Vaidya and Pradhan, *Improving Performance of TCP over Wireless Networks* (TR-96-014).
    """)
    return


@app.cell
def _(papers):
    paper = papers.paper("ebsn")
    [(reading.name, reading.question) for reading in paper.readings][:4]
    return (paper,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    Figure 3, a packet trace of basic TCP, and figure 7, its throughput against the packet size.
    `papers.reproduce("ebsn")` without `figures` draws all of them and judges every claim; it takes a quarter
    of a minute.
    """)
    return


@app.cell
def _(papers):
    outcome = papers.reproduce("ebsn", figures=["3", "7"])
    outcome
    return (outcome,)


@app.cell
def _(outcome):
    throughput = outcome.figures[-1][1]
    throughput
    return (throughput,)


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    A figure carries its data; `plots.save` writes it as PNG, SVG and CSV.
    """)
    return


@app.cell
def _(throughput):
    peaks = {}
    for label, size, rate in zip(*(throughput.data[name] for name in ("line", "x", "y")), strict=True):
        if rate > peaks.get(label, (0, 0))[1]:
            peaks[label] = (size, rate)
    {label: f"best at {size:.0f} B: {rate / 1e3:.2f} kbps" for label, (size, rate) in peaks.items()}
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Readings

    A paper leaves things open. Each open question is a reading with named choices, and the figures can be
    drawn with another one: `papers.reproduce("ebsn", readings={"retransmissions": "13"})`, or `lasthop
    paper ebsn --reading retransmissions=13`.
    """)
    return


@app.cell
def _(paper):
    {choice.name: choice.note for choice in paper.readings[0].choices}
    return


if __name__ == "__main__":
    app.run()
