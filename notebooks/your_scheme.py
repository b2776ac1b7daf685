import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="A scheme of your own")


@app.cell
def _():
    import marimo as mo

    import lasthop
    from lasthop.study import Study

    return Study, lasthop, mo


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    # A scheme of your own

    A scheme is what is added to plain TCP: agents at the base station or the mobile host, reactions of the
    sender or the receiver, the use of the link's ARQ or code.
    """)
    return


@app.cell
def _(lasthop):
    {scheme.name: scheme.summary for scheme in lasthop.schemes()}
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Combine

    `+` combines schemes. Which part of the gain of Snoop with an ARQ is whose?
    """)
    return


@app.cell
def _(lasthop):
    lossy = lasthop.load("last-mile", ["limit=20 s", "sender=linux-reno"])
    lasthop.run_each(lossy, ["basic", "arq", "snoop", "snoop + arq", "snoop + eln"])
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Change its parameters

    Each scheme has a table `[scheme.NAME]`, and every parameter can be swept like any other setting.
    """)
    return


@app.cell
def _(lasthop, mo):
    canonical = lasthop.load("last-mile").to_toml()
    mo.md(f"```toml\n{canonical[canonical.index('[scheme.snoop]') : canonical.index('[scheme.smart]')]}```")
    return


@app.cell
def _(Study, lasthop):
    buffers = lasthop.load(
        "last-mile",
        [
            "limit=10 s",
            'schemes=["snoop"]',
            "sender=linux-reno",
            'sweep={"scheme.snoop.cache" = [1, 4, 16, 64]}',
        ],
    )
    study = Study(buffers, precision=None, runs=(20, 20))
    study.run()
    study
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Change the sender

    `[senders.NAME]` is a sender by any of the settings of TCP: here CUBIC without RACK, which takes ten
    duplicate ACKs for a loss.
    """)
    return


@app.cell
def _(lasthop):
    patient = lasthop.load(
        "last-mile",
        ["limit=20 s", 'senders.patient={profile="linux", detection="sack", dupthresh=10}', "sender=patient"],
    )
    lasthop.run_each(patient, ["basic", "arq"])
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md("""
    ## Write one

    A scheme is one file of Rust and one line that registers it. The file of CONTRIBUTING.md, `ebsn_once.rs`,
    is a variant of EBSN whose base station reports only the first failed attempt of each unit. Its heart:

    ```rust
    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.arq(ArqUse::Required);
        installer.at_base_station(|_site| Agent::default());
        installer.at_sender(|| RestartTimer);
    }
    ```
    `Agent` sees each attempt of the link and sends a notice; `RestartTimer` reacts to it in the source. Put
    the file into `crates/proto/src/scheme/`, add `ebsn_once: EbsnOnce,` to `registry::register!` in `mod.rs`,
    and run `make run`. The next cell then compares it with the original; until then it says what is missing.
    """)
    return


@app.cell
def _(lasthop, mo):
    own = "ebsn-once"
    known = [scheme.name for scheme in lasthop.schemes()]
    (
        lasthop.run_each("ebsn-example", ["ebsn", own])
        if own in known
        else mo.md(f"`{own}` is not registered in this installation.")
    )
    return


if __name__ == "__main__":
    app.run()
