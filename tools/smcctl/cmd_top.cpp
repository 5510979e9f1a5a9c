// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// top: what attached regions do, again and again: drawn in place on a terminal, else as tables or JSON.
#include <algorithm>
#include <ctime>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>

#include "cli.hpp"
#include "counters.hpp"
#include "screen.hpp"
#include "top_view.hpp"

namespace smc::ctl {
namespace {

using Clock = std::chrono::steady_clock;

struct TopArgs {
    RegionName region; // node empty: all
    double interval_s = 1;
    uint64_t count = 0; // 0: until interrupted
    std::string sort = top_sort_keys().front();

    [[nodiscard]] Clock::duration interval() const
    {
        return std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(interval_s));
    }
    [[nodiscard]] bool done(uint64_t round) const { return count != 0 && round >= count; }
};

std::string time_of_day()
{
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    std::array<char, 16> text{};
    std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
    return text.data();
}

// Looks at the kernel, and makes a frame of what came since the last look.
class Sampler {
public:
    static Result<Sampler> start(const TopArgs& args)
    {
        auto kernel = SMC_TRY(client::Kernel::open());
        auto first = SMC_TRY(sample_regions(kernel, args.region));
        return Sampler(std::move(kernel), std::move(first), args);
    }

    [[nodiscard]] Clock::time_point due() const { return taken_ + args_->interval(); }

    Result<TopFrame> next(const std::string& sort)
    {
        auto samples = SMC_TRY(sample_regions(kernel_, args_->region));
        const auto now = Clock::now();
        const double seconds = std::chrono::duration<double>(now - taken_).count();
        taken_ = now;
        TopFrame frame{time_of_day(), seconds, sort, intervals_.rows(std::move(samples), seconds)};
        sort_rows(frame.rows, sort);
        return frame;
    }

private:
    Sampler(client::Kernel kernel, std::vector<RegionSample> first, const TopArgs& args)
        : kernel_(std::move(kernel)), intervals_(std::move(first)), args_(&args)
    {}

    client::Kernel kernel_;
    Interval intervals_;
    const TopArgs* args_;
    Clock::time_point taken_ = Clock::now();
};

Result<int> top_plain(const Context& context, const TopArgs& args)
{
    auto sampler = SMC_TRY(Sampler::start(args));
    Output out = context.output();
    for (uint64_t round = 0; !args.done(round); round++) {
        std::this_thread::sleep_until(sampler.due());
        const auto frame = SMC_TRY(sampler.next(args.sort));
        out.model_line({{"interval_s", frame.interval_s}, {"regions", frame.rows}});
        if (round > 0)
            out.line("");
        if (frame.rows.empty())
            out.line("(none)");
        else
            for (const auto& line : top_table(frame.rows, 0))
                out.line(line);
        context.out.flush();
        if (!context.out)
            return fail(EPIPE, "cannot write the output");
    }
    return 0;
}

std::string next_sort(const std::string& sort)
{
    const auto& keys = top_sort_keys();
    auto at = std::find(keys.begin(), keys.end(), sort);
    return at == keys.end() || ++at == keys.end() ? keys.front() : *at;
}

// Until the user has enough, or it has shown what was asked for. Return: what was shown last.
Result<std::vector<std::string>> draw_rounds(Screen& screen, const TopArgs& args)
{
    auto sampler = SMC_TRY(Sampler::start(args));
    TopFrame frame{time_of_day(), args.interval_s, args.sort, Json::array()};
    std::vector<std::string> lines;
    bool measured = false; // there is nothing to show before the first interval is over
    const auto draw = [&] {
        const auto size = Screen::size();
        if (measured)
            lines = top_screen(frame, size.height, size.width);
        screen.draw(measured ? lines : std::vector<std::string>{"smcctl top: measuring ..."});
    };
    draw();
    for (uint64_t round = 0; !args.done(round);) {
        const auto happened = screen.wait(sampler.due());
        if (happened.event == Screen::Event::quit)
            break;
        if (happened.event == Screen::Event::key && (happened.key == 's' || happened.key == 'S')) {
            frame.sort = next_sort(frame.sort);
            sort_rows(frame.rows, frame.sort);
        }
        if (happened.event == Screen::Event::time) {
            frame = SMC_TRY(sampler.next(frame.sort));
            measured = true;
            round++;
        }
        draw();
    }
    return lines;
}

Result<int> top_live(const Context& context, const TopArgs& args)
{
    Result<std::vector<std::string>> last;
    {
        const auto screen = SMC_TRY(Screen::open());
        last = draw_rounds(*screen, args);
    }
    const auto lines = SMC_TRY(std::move(last));
    // The second screen is gone: what it showed last stays.
    Output out = context.output();
    for (const auto& line : lines)
        out.line(line);
    return 0;
}

} // namespace

void add_top(CLI::App& app, Context& context)
{
    auto args = std::make_shared<TopArgs>();
    CLI::App* verb = add_verb(
        app, context, "top", "What regions do now: rates, faults, latencies", [&context, args] {
            return !context.json && Screen::possible() ? top_live(context, *args)
                                                       : top_plain(context, *args);
        });
    add_region(*verb, args->region);
    verb->add_option("-i,--interval", args->interval_s, "Seconds between two looks")
        ->check(CLI::Range(0.1, 3600.0))
        ->type_name("SECONDS")
        ->capture_default_str();
    verb->add_option("-n,--count", args->count, "Stop after so many [never]")->type_name("N");
    verb->add_option("--sort", args->sort, "By what, the largest first")
        ->check(CLI::IsMember(top_sort_keys()))
        ->type_name("KEY")
        ->capture_default_str();
}

} // namespace smc::ctl
