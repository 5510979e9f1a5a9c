// SPDX-License-Identifier: GPL-2.0
/*
 * smcfs: init and exit in order, nothing else.
 * Copyright (c) 2026 The SMC authors
 */
#include <linux/module.h>

#include "smcfs.h"

struct workqueue_struct *smcfs_wq;
struct workqueue_struct *smcfs_flush_wq;

static int __init smcfs_init(void)
{
	int err;

	smcfs_stage_setup();
	smcfs_wq = alloc_workqueue("smcfs", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!smcfs_wq)
		return -ENOMEM;
	smcfs_flush_wq = alloc_workqueue("smcfs_flush", WQ_UNBOUND | WQ_MEM_RECLAIM, WQ_MAX_ACTIVE);
	if (!smcfs_flush_wq) {
		err = -ENOMEM;
		goto err_wq;
	}
	smcfs_drop_init();
	err = smcfs_xfer_init();
	if (err)
		goto err_flush_wq;
	err = smcfs_session_init();
	if (err)
		goto err_xfer;
	err = smcfs_wb_init();
	if (err)
		goto err_session;
	err = smcfs_region_init();
	if (err)
		goto err_wb;
	err = smcfs_netlink_init();
	if (err)
		goto err_region;
	err = smcfs_super_init();
	if (err)
		goto err_netlink;
	pr_info("smcfs: version %s loaded\n", SMCFS_MODULE_VERSION);
	return 0;

err_netlink:
	smcfs_netlink_exit();
err_region:
	smcfs_region_exit();
	smcfs_peer_exit();	/* the family may have been used already */
err_wb:
	smcfs_wb_exit();
err_session:
	smcfs_session_exit();
err_xfer:
	smcfs_xfer_exit();
err_flush_wq:
	destroy_workqueue(smcfs_flush_wq);
err_wq:
	destroy_workqueue(smcfs_wq);
	return err;
}

/* Runs with no mount and no session: both hold module references. */
static void __exit smcfs_exit(void)
{
	smcfs_super_exit();
	smcfs_netlink_exit();
	smcfs_region_exit();
	smcfs_drop_exit();
	destroy_workqueue(smcfs_flush_wq);
	smcfs_peer_exit();
	smcfs_wb_exit();
	smcfs_session_exit();
	smcfs_xfer_exit();
	destroy_workqueue(smcfs_wq);
}

module_init(smcfs_init);
module_exit(smcfs_exit);

MODULE_DESCRIPTION("SMC: remote accelerator memory as local memory");
MODULE_AUTHOR("The SMC authors");
MODULE_VERSION(SMCFS_MODULE_VERSION);
MODULE_LICENSE("GPL");
MODULE_ALIAS_FS("smcfs");
