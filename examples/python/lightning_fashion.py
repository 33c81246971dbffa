"""A Lightning training with curves and checkpoints: python3 lightning_fashion.py --epochs 3. Beside it, at the same time:

    evaluator --checkpoint-dir ckpt/lightning --eval-dir runs/lightning/eval --model torch_fashion.model --data fashion-mnist
    tensorboard --logdir runs
"""
import argparse

import lightning
import torch

import evalboard
from torch_fashion import Network, training_data


class Training(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        network = Network()
        self.conv1, self.conv2, self.hidden, self.logits = network.conv1, network.conv2, network.hidden, network.logits

    forward = Network.forward

    def training_step(self, batch, index):
        images, labels = batch
        outputs = self(images)
        loss = torch.nn.functional.cross_entropy(outputs, labels)
        self.log("train/loss", loss)
        self.log("train/accuracy", (outputs.argmax(1) == labels).float().mean())
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log-dir", default="runs")
    parser.add_argument("--checkpoint-dir", default="ckpt/lightning")
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*training_data()), batch_size=128, shuffle=True)
    trainer = lightning.Trainer(
        max_epochs=options.epochs, log_every_n_steps=20, accelerator="cpu", enable_progress_bar=False,
        enable_checkpointing=False, logger=evalboard.callbacks.LightningLogger(options.log_dir, "lightning", "train"),
        callbacks=[evalboard.callbacks.LightningCheckpoint(options.checkpoint_dir, every_n_train_steps=100)])
    trainer.fit(Training(), batches)


if __name__ == "__main__":
    main()
