// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "core/log.hpp"

#include <cstdlib>
#include <memory>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace smc::log {
namespace {

// "%*" becomes the syslog level as journald expects it at the start of a line.
class SyslogLevelFlag final : public spdlog::custom_flag_formatter {
public:
    void format(const spdlog::details::log_msg& msg, const std::tm&,
                spdlog::memory_buf_t& dest) override
    {
        const std::string_view level = syslog_level(msg.level);
        dest.append(level.data(), level.data() + level.size());
    }
    [[nodiscard]] std::unique_ptr<custom_flag_formatter> clone() const override
    {
        return std::make_unique<SyslogLevelFlag>();
    }

private:
    static std::string_view syslog_level(spdlog::level::level_enum level)
    {
        switch (level) {
        case spdlog::level::critical:
            return "<2>";
        case spdlog::level::err:
            return "<3>";
        case spdlog::level::warn:
            return "<4>";
        case spdlog::level::info:
            return "<6>";
        default:
            return "<7>";
        }
    }
};

} // namespace

Result<void> init(std::string_view level)
{
    const auto parsed = spdlog::level::from_str(std::string(level));
    if (parsed == spdlog::level::off && level != "off")
        return fail(EINVAL, fmt::format("log level \"{}\": use one of trace, debug, info, warning, "
                                        "error, critical, off",
                                        level));

    std::shared_ptr<spdlog::logger> logger;
    if (std::getenv("JOURNAL_STREAM") != nullptr) { // NOLINT(concurrency-mt-unsafe)
        logger = std::make_shared<spdlog::logger>(
            "smcfsd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        auto formatter = std::make_unique<spdlog::pattern_formatter>();
        formatter->add_flag<SyslogLevelFlag>('*').set_pattern("%*%v");
        logger->set_formatter(std::move(formatter));
    } else {
        logger = std::make_shared<spdlog::logger>(
            "smcfsd", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
        logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e smcfsd %^%l%$: %v");
    }
    logger->set_level(parsed);
    logger->flush_on(spdlog::level::trace);
    spdlog::set_default_logger(std::move(logger));
    return {};
}

bool RateLimit::allow()
{
    const auto now = Clock::now();
    if (now - window_start_ >= interval_) {
        window_start_ = now;
        used_ = 0;
    }
    if (used_ >= burst_) {
        ++refused_;
        return false;
    }
    ++used_;
    suppressed_ = std::exchange(refused_, 0);
    return true;
}

} // namespace smc::log
