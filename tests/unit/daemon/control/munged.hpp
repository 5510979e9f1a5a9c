// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// A munged with a key of its own for as long as this lives.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "control/seal.hpp"

extern char** environ;

namespace smc::test {

class Munged {
public:
    Munged()
    {
        char pattern[] = "/tmp/smc-munged-XXXXXX";
        if (::mkdtemp(pattern) == nullptr)
            return;
        directory_ = pattern;
        const std::string key_path = directory_ + "/key";
        std::ofstream(key_path) << std::string(64, 'k') << directory_;
        ::chmod(key_path.c_str(), 0600);
        ::chmod(directory_.c_str(), 0755);
        const std::string key = "--key-file=" + key_path;
        const std::string sock = "--socket=" + socket();
        const std::string pid = "--pid-file=" + directory_ + "/pid";
        const std::string log = "--log-file=" + directory_ + "/log";
        const std::string seed = "--seed-file=" + directory_ + "/seed";
        const char* arguments[] = {"munged",    "--foreground", "--force",
                                   key.c_str(), sock.c_str(),   pid.c_str(),
                                   log.c_str(), seed.c_str(),   nullptr};
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        for (const auto* path : {"/usr/sbin/munged", "/usr/bin/munged"})
            if (pid_ <= 0 && ::posix_spawn(&pid_, path, &actions, nullptr,
                                           const_cast<char**>(arguments), environ) != 0)
                pid_ = -1;
        ::posix_spawn_file_actions_destroy(&actions);
    }
    Munged(const Munged&) = delete;
    Munged& operator=(const Munged&) = delete;
    ~Munged()
    {
        if (pid_ > 0) {
            ::kill(pid_, SIGTERM);
            ::waitpid(pid_, nullptr, 0);
        }
        std::error_code ignored;
        std::filesystem::remove_all(directory_, ignored);
    }

    [[nodiscard]] std::string socket() const { return directory_ + "/socket"; }

    // Once it answers; its error when it does not within 10 s.
    [[nodiscard]] Result<void> wait() const
    {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (true) {
            auto result = check_munge(socket());
            if (result || std::chrono::steady_clock::now() > until)
                return result;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }

private:
    std::string directory_;
    pid_t pid_ = -1;
};

} // namespace smc::test
