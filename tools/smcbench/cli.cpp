// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "cli.hpp"

#include <unistd.h>

#include <iomanip>
#include <ostream>

#include <CLI/CLI.hpp>

#include "raw.hpp"
#include "workload.hpp"

namespace smc::bench {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr unsigned kRepsMin = 5; // a median of less says little
constexpr unsigned kRepsMax = 100000;
constexpr unsigned kSilenceMaxS = 3600;

struct Arguments {
    bool json = false;
    std::string path;
    std::vector<std::string> names;
    unsigned reps = 7;
    std::uint64_t seed = 1;
    bool write = false;
    std::string raw;     // address of smcbench serve
    std::string figures; // a file
    std::uint16_t port = kRawPort;
    unsigned silence_s = 30;
};

// One line that is written over and over, where somebody watches.
class Progress {
public:
    Progress(std::ostream& err, bool shown) : err_(err), shown_(shown) {}
    void show(std::string_view name, unsigned done, unsigned all)
    {
        if (shown_)
            err_ << '\r' << std::left << std::setw(24) << name << done << '/' << all << std::flush;
    }
    void clear()
    {
        if (shown_)
            err_ << '\r' << std::string(40, ' ') << '\r' << std::flush;
    }

private:
    std::ostream& err_;
    bool shown_;
};

void list(std::ostream& out)
{
    for (const Workload& workload : workloads())
        out << std::left << std::setw(20) << workload.name << workload.what
            << (workload.stores ? " (overwrites)" : "") << '\n';
}

std::string microseconds(const Json& cell, const char* key)
{
    if (!cell.contains(key))
        return "-";
    std::ostringstream text;
    text << std::fixed << std::setprecision(2) << cell[key].get<double>() / 1e3;
    return text.str();
}

void print_head(std::ostream& out)
{
    out << std::left << std::setw(18) << "workload" << std::right << std::setw(12) << "us"
        << std::setw(12) << "min" << std::setw(12) << "max" << std::setw(12) << "stores"
        << std::setw(12) << "barrier" << std::setw(10) << "MB/s" << std::setw(10) << "x raw"
        << '\n';
}

void print_cell(std::ostream& out, const Json& cell)
{
    const double ns = cell["ns"].get<double>();
    out << std::left << std::setw(18) << cell["workload"].get<std::string>() << std::right;
    for (const char* key : {"ns", "min_ns", "max_ns", "store_ns", "barrier_ns"})
        out << std::setw(12) << microseconds(cell, key);
    out << std::setw(10) << std::fixed << std::setprecision(1)
        << cell["bytes"].get<double>() * 1e3 / ns << std::setw(10);
    if (cell.contains("raw_ns"))
        out << std::setprecision(3) << ns / cell["raw_ns"].get<double>();
    else
        out << "-";
    out << '\n';
    if (cell.contains("resident_pages"))
        out << "  not cold: " << cell["resident_pages"] << " pages stayed when it was dropped\n";
    out.flush();
}

// Figures of raw verbs, from where the command line says, printed as they are got.
Result<Figures> raw_figures(const Arguments& args, Progress& progress, std::ostream& out)
{
    if (!args.figures.empty())
        return Figures::load(args.figures);
    if (args.raw.empty())
        return Figures{};
    auto figures =
        measure_raw({args.raw, args.port}, [&](const std::string& kind, std::uint64_t bytes,
                                               unsigned round, unsigned rounds) {
            progress.show("raw " + kind + " " + std::to_string(bytes), round, rounds);
        });
    progress.clear();
    if (!figures)
        return figures;
    if (!args.json)
        out << std::left << std::setw(18) << "raw verbs" << std::right << std::setw(12) << "bytes"
            << std::setw(12) << "us" << std::setw(12) << "MB/s" << '\n';
    for (const auto& [key, ns] : figures->all()) {
        const auto& [kind, bytes] = key;
        if (args.json)
            out << Json{{"raw", kind}, {"bytes", bytes}, {"ns", ns}}.dump() << '\n';
        else
            out << std::left << std::setw(18) << kind << std::right << std::setw(12) << bytes
                << std::setw(12) << std::fixed << std::setprecision(2) << ns / 1e3 << std::setw(12)
                << std::setprecision(1) << static_cast<double>(bytes) * 1e3 / ns << '\n';
    }
    if (!args.json)
        out << '\n';
    return figures;
}

Result<void> measure(const Arguments& args, std::ostream& out, std::ostream& err)
{
    std::vector<const Workload*> chosen;
    for (const std::string& name : args.names)
        chosen.push_back(find_workload(name));
    if (chosen.empty()) {
        for (const Workload& workload : workloads()) {
            if (args.write || !workload.stores)
                chosen.push_back(&workload);
        }
    }
    auto mapping = SMC_TRY(
        Mapping::open(args.path, args.write ? Mapping::Access::write : Mapping::Access::read));
    Progress progress(err, ::isatty(STDERR_FILENO) != 0);
    Bench bench{mapping, args.reps, std::mt19937_64(args.seed),
                SMC_TRY(raw_figures(args, progress, out))};
    if (!args.json)
        print_head(out);
    for (const Workload* workload : chosen) {
        bench.progress = [&](unsigned done, unsigned all) {
            progress.show(workload->name, done, all);
        };
        auto cell = run_workload(*workload, bench);
        progress.clear();
        if (!cell)
            return tl::unexpected<Error>(std::move(cell).error());
        if (args.json)
            out << cell->dump() << std::endl;
        else
            print_cell(out, *cell);
    }
    return {};
}

Result<void> serve(const Arguments& args, std::ostream& err)
{
    RawServer server;
    server.port = args.port;
    server.silence = std::chrono::seconds(args.silence_s);
    server.listening = [&] { err << "smcbench: listening on port " << args.port << std::endl; };
    server.lost = [&](const Error& error) { err << "smcbench: " << error.what << std::endl; };
    return serve_raw(server);
}

} // namespace

int run(const std::vector<std::string>& args, std::ostream& out, std::ostream& err)
{
    Arguments arguments;
    CLI::App app{"smcbench: what the mapping of a region costs"};
    app.set_version_flag("--version", "smcbench " SMC_VERSION);
    app.add_flag("-j,--json", arguments.json, "JSON, one object a line");
    app.require_subcommand(1);

    auto* list_verb = app.add_subcommand("list", "the workloads");
    auto* run_verb = app.add_subcommand("run", "measure a mapping");
    run_verb->fallthrough();
    run_verb->add_option("PATH", arguments.path, "/smc/NODE/REGION, or another file")->required();
    run_verb
        ->add_option("WORKLOAD", arguments.names,
                     "what to measure; default: all, or all that only load")
        ->check([](const std::string& name) {
            return find_workload(name) != nullptr ? "" : name + " is none; see smcbench list";
        });
    run_verb->add_option("--reps", arguments.reps, "repetitions beside the first, default 7")
        ->check(CLI::Range(kRepsMin, kRepsMax));
    run_verb->add_option("--seed", arguments.seed, "of what is random, default 1");
    run_verb->add_flag("--write", arguments.write, "workloads may overwrite the file");
    auto* raw = run_verb->add_option("--raw", arguments.raw,
                                     "measure raw verbs with smcbench serve at this address");
    run_verb->add_option("--figures", arguments.figures, "raw verbs as measured before: a file")
        ->excludes(raw);
    auto* serve_verb = app.add_subcommand("serve", "on the target: be the other end of --raw");
    for (auto* verb : {run_verb, serve_verb})
        verb->add_option("--port", arguments.port, "of smcbench serve, default 7452")
            ->check(CLI::Range(1, 65535));
    serve_verb
        ->add_option("--silence", arguments.silence_s,
                     "seconds after which a peer that says nothing is given up, default 30")
        ->check(CLI::Range(1U, kSilenceMaxS));
    try {
        // CLI11 takes arguments from the back.
        app.parse(std::vector<std::string>{args.rbegin(), args.rend()});
        for (const std::string& name : arguments.names) {
            if (find_workload(name)->stores && !arguments.write)
                throw CLI::ValidationError(name, "overwrites the file: say --write");
        }
    } catch (const CLI::ParseError& error) {
        return app.exit(error, out, err) == 0 ? 0 : kExitUsage;
    }
    if (*list_verb) {
        list(out);
        return 0;
    }
    const auto done = *serve_verb ? serve(arguments, err) : measure(arguments, out, err);
    if (!done) {
        err << "smcbench: " << done.error().what << '\n';
        return kExitFailed;
    }
    return 0;
}

} // namespace smc::bench
