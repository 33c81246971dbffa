r"""A training with Hugging Face's Trainer, its curves and its own checkpoints, ckpt/hf/checkpoint-N/model.safetensors:
python3 hugging_face_fashion.py --epochs 3. Beside it, at the same time:

    evaluator --checkpoint-dir ckpt/hf --eval-dir runs/hf/eval --model torch_fashion.model --data fashion-mnist \
        --pattern 'checkpoint-{step}/' --ready marker:trainer_state.json --ready quiet:1
    tensorboard --logdir runs
"""
import argparse

import torch
import transformers

import evalboard
from torch_fashion import Network, training_data


class Training(Network):
    def forward(self, pixels, labels):
        outputs = super().forward(pixels)
        return {"loss": torch.nn.functional.cross_entropy(outputs, labels), "logits": outputs}


class Samples(torch.utils.data.Dataset):
    def __init__(self):
        self.images, self.labels = training_data()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"pixels": self.images[index], "labels": self.labels[index]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log-dir", default="runs/hf")
    parser.add_argument("--checkpoint-dir", default="ckpt/hf")
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    arguments = transformers.TrainingArguments(
        output_dir=options.checkpoint_dir, num_train_epochs=options.epochs, per_device_train_batch_size=128,
        learning_rate=1e-3, save_steps=100, logging_steps=20, report_to="none", use_cpu=True, disable_tqdm=True)
    trainer = transformers.Trainer(Training(), arguments, train_dataset=Samples(),
                                   callbacks=[evalboard.callbacks.HuggingFaceCallback(options.log_dir)])
    trainer.train()


if __name__ == "__main__":
    main()
